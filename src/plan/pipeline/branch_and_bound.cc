// A case says which stages each unit may have. Its bound is that of a weighted sum of compute and transfers, divided by
// the sum of the weights; each weight is raised and lowered as long as the bound grows. The case with the least bound
// is split in two by a question (case_questions.h): the one of several whose answers both raise the bound most. What
// follows from an answer for other units is found before the cuts (narrow_ranges.h), and refutes many cases by itself.
#include "plan/pipeline/branch_and_bound.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>

#include "plan/pipeline/case_questions.h"
#include "plan/pipeline/limits.h"
#include "plan/pipeline/weighted_cut.h"

namespace headrace::plan {
namespace {

// Sweeps over the weights of the first case, which may take this part of the steps, and of the others, which begin with
// the weights of a larger case.
constexpr int kFirstSweeps = 24;
constexpr int64_t kFirstShareOfSteps = 8;
constexpr int kSweeps = 1;
// A sweep changes each weight by a factor. When no change helps, the next sweep takes the root of it, also in the parts
// of the case.
constexpr double kFirstFactor = 4;
constexpr double kLeastFactor = 1.05;
// Relative to the largest weight: a smaller one becomes 0, and is raised from kRaisedShare at least.
constexpr double kLeastShare = 0.002;
constexpr double kRaisedShare = 0.02;
// A question whose answer leaves the bound as it is counts as if it raised it by this share of the goal.
constexpr double kSmallGain = 1e-4;

using Shares = std::array<double, 2 * kMaxCutStages>;  // weights of compute, then of transfers

struct Case {
  StageRanges ranges;
  Shares shares{};
  BorderChoice choice = BorderChoice::all_alike;
  double factor = kFirstFactor;
  int64_t bound_ns = 0;
  int64_t number = 0;
};

struct IsLonger {
  bool operator()(const Case& a, const Case& b) const {
    return std::pair(a.bound_ns, a.number) > std::pair(b.bound_ns, b.number);
  }
};

class Brancher {
 public:
  Brancher(const SplitGraph& graph, int64_t goal_ns, int64_t max_steps, const VisitStages& found)
      : graph_(graph),
        goal_ns_(goal_ns),
        max_steps_(max_steps),
        found_(found),
        stages_(graph.devices.num_devices),
        overlaps_(any_overlaps(graph)),
        cut_(graph),
        narrower_(graph) {}

  int64_t run() {
    Case all;
    all.ranges = StageRanges(graph_, stages_);
    for (size_t stage = 0; stage < as_index(stages_); ++stage) {
      all.shares[stage] = 1;
      if (overlaps_) all.shares[stage + kMaxCutStages] = 0.5;
    }
    if (!narrow(all)) return goal_ns_;
    raise_bound(all, kFirstSweeps, max_steps_ / kFirstShareOfSteps);
    open(std::move(all));
    while (!open_.empty()) {
      const Case next = open_.top();
      if (next.bound_ns >= goal_ns_) break;
      open_.pop();
      if (steps() >= max_steps_ || !split(next)) return next.bound_ns;
    }
    return goal_ns_;
  }

  int64_t steps() const { return cut_.steps() + narrower_.steps(); }

 private:
  void open(Case&& one) {
    one.number = ++cases_;
    if (one.bound_ns < goal_ns_) open_.push(std::move(one));
  }

  // Opens the parts of a case. Returns false when there is no question left.
  bool split(Case one) {
    const std::vector<Question> questions = make_questions(graph_, narrower_, one.ranges, goal_ns_);
    if (questions.empty()) return false;
    double most = -1;
    bool is_restricted = false;
    std::array<Case, 2> chosen;
    for (const Question& question : questions) {
      std::array<Case, 2> parts = make_parts(one, question, questions.size() > 1);
      const bool has_no = parts[0].bound_ns < goal_ns_, has_yes = parts[1].bound_ns < goal_ns_;
      if (!has_no && !has_yes) return true;
      if (!has_no || !has_yes) {  // the other questions are about the only part left
        one = std::move(parts[has_yes]);
        is_restricted = true;
        continue;
      }
      const double worth = gain(one, parts[0]) * gain(one, parts[1]);
      if (worth <= most) continue;
      most = worth;
      chosen = std::move(parts);
    }
    if (is_restricted) {
      raise_and_open(std::move(one));
    } else {
      for (Case& part : chosen) raise_and_open(std::move(part));
    }
    return true;
  }

  std::array<Case, 2> make_parts(const Case& one, const Question& question, bool by_cut) {
    std::array<Case, 2> parts{one, one};
    for (const bool is_yes : {false, true}) {
      Case& part = parts[is_yes];
      restrict_to_answer(graph_, question, is_yes, part.ranges);
      int64_t least = -1;
      if (narrow(part) && by_cut) try_weights(part, Shares(part.shares), part.choice, least);
    }
    return parts;
  }

  double gain(const Case& one, const Case& part) const {
    return static_cast<double>(part.bound_ns - one.bound_ns) + kSmallGain * static_cast<double>(goal_ns_);
  }

  void raise_and_open(Case&& one) {
    raise_bound(one, kSweeps, max_steps_);
    open(std::move(one));
  }

  // Narrows the ranges of a case, and raises its bound by what is known without a cut. Returns whether it may have
  // plans below the goal.
  bool narrow(Case& one) {
    const bool is_left = narrower_.narrow(goal_ns_, one.ranges);
    one.bound_ns = std::max(one.bound_ns, is_left ? compute_bound(one.ranges) : goal_ns_);
    return one.bound_ns < goal_ns_;
  }

  void raise_bound(Case& one, int sweeps, int64_t max_steps) {
    int64_t least = -1;  // by the case's weights; its bound may be above it
    const Shares start = one.shares;
    for (const auto choice : {BorderChoice::all_alike, BorderChoice::lowest_first, BorderChoice::highest_first})
      try_weights(one, start, choice, least);
    for (int sweep = 0; sweep < sweeps && one.bound_ns < goal_ns_ && steps() < max_steps; ++sweep) {
      if (sweep_weights(one, max_steps, least)) continue;
      if (one.factor <= kLeastFactor) return;
      one.factor = std::max(kLeastFactor, std::sqrt(one.factor));
    }
  }

  // Raises or lowers each weight by a factor. Returns whether some change helped.
  bool sweep_weights(Case& one, int64_t max_steps, int64_t& least) {
    bool grew = false;
    for (size_t i = 0; i < one.shares.size() && steps() < max_steps; ++i) {
      if (i % kMaxCutStages >= as_index(stages_) || (i >= kMaxCutStages && !overlaps_)) continue;
      for (const bool raises : {true, false}) {
        Shares shares = one.shares;
        if (raises) shares[i] = std::max(shares[i], kRaisedShare) * one.factor;
        if (!raises) shares[i] /= one.factor;
        const double most = *std::max_element(shares.begin(), shares.end());
        for (double& share : shares) share = share / most < kLeastShare ? 0 : share / most;
        if (shares == one.shares || !try_weights(one, shares, one.choice, least)) continue;
        grew = true;
        break;
      }
    }
    return grew;
  }

  // Gives the case these weights when its bound by them is above `least`, which is raised. Returns whether it is.
  bool try_weights(Case& one, const Shares& shares, BorderChoice choice, int64_t& least) {
    if (one.bound_ns >= goal_ns_) return false;
    const int64_t limit = goal_ns_ * kWeightSum;
    const int64_t sum = cut_.least_sum(one.ranges, rounded(shares), choice, limit);
    const int64_t bound = (sum + kWeightSum - 1) / kWeightSum;
    one.bound_ns = std::max(one.bound_ns, bound);
    if (sum < limit) goal_ns_ = std::min(goal_ns_, found_(cut_.stages()));
    if (bound <= least) return false;
    least = bound;
    one.shares = shares;
    one.choice = choice;
    return true;
  }

  // Returns the most that a row of stages has to compute for sure, divided by the number of these stages.
  int64_t compute_bound(const StageRanges& ranges) const {
    std::array<std::array<int64_t, kMaxCutStages>, kMaxCutStages> sums{};
    for (int32_t unit = 0; unit < graph_.num_units; ++unit)
      sums[static_cast<size_t>(ranges.first[as_index(unit)])][static_cast<size_t>(ranges.last[as_index(unit)])] +=
          graph_.fastest(unit);
    int64_t most = 0;
    for (size_t first = 0; first < as_index(stages_); ++first) {
      int64_t sum = 0;
      for (size_t last = first; last < as_index(stages_); ++last) {
        for (size_t i = first; i <= last; ++i) sum += sums[i][last];
        most = std::max(most, sum / static_cast<int64_t>(last - first + 1));
      }
    }
    return most;
  }

  // Returns weights with the sum kWeightSum in about these shares. Without overlap a stage's weights are one.
  StageWeights rounded(const Shares& shares) const {
    const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
    const auto weight = [&](size_t i) { return static_cast<int64_t>(shares[i] / sum * kWeightSum); };
    StageWeights made;
    int64_t left = kWeightSum;
    for (size_t stage = 0; stage < as_index(stages_); ++stage) {
      made.compute[stage] = weight(stage);
      made.transfers[stage] = weight(stage + (overlaps_ ? size_t{kMaxCutStages} : 0));
      left -= made.compute[stage] + (overlaps_ ? made.transfers[stage] : 0);
    }
    made.compute[0] += left;
    if (!overlaps_) made.transfers[0] += left;
    return made;
  }

  const SplitGraph& graph_;
  int64_t goal_ns_, max_steps_;
  const VisitStages& found_;
  int32_t stages_;
  bool overlaps_;
  WeightedCut cut_;
  RangeNarrower narrower_;
  std::priority_queue<Case, std::vector<Case>, IsLonger> open_;
  int64_t cases_ = 0;
};

// Returns whether weighted sums of all times stay far below the capacity of arcs that no cut may have.
bool are_short(const SplitGraph& graph, int64_t goal_ns) {
  auto sum = static_cast<double>(goal_ns);
  for (int32_t unit = 0; unit < graph.num_units; ++unit) sum += static_cast<double>(graph.fastest(unit));
  for (const int64_t bytes : graph.tensor_bytes)
    sum += 2.0 * kMaxCutStages * static_cast<double>(least_transfer(graph, bytes).in_ns);
  return sum * kWeightSum < static_cast<double>(kUncuttable / 4);
}

}  // namespace

int64_t bound_by_branches(const SplitGraph& graph, int64_t goal_ns, int64_t& max_steps, const VisitStages& found) {
  const int32_t devices = graph.devices.num_devices;
  if (devices < 2 || devices > kMaxCutStages || most_replicas(graph) > 1 || graph.num_units > kMaxBranchUnits ||
      !are_short(graph, goal_ns))
    return 0;
  Brancher brancher(graph, goal_ns, max_steps, found);
  const int64_t bound = brancher.run();
  max_steps -= brancher.steps();
  return bound;
}

}  // namespace headrace::plan
