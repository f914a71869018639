// A case says which stages each unit may have. Its bound is that of a weighted sum of compute and transfers, divided by
// the sum of the weights; each weight is raised and lowered as long as the bound grows. The case with the least bound
// is split in two: some unit is below some border, with all that it depends on, or above it, with all that depends on
// it. The unit and the border are those that say most about other units in both cases.
#include "plan/pipeline/branch_and_bound.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <queue>

#include "plan/pipeline/weighted_cut.h"

namespace headrace::plan {
namespace {

// Sweeps over the weights of the first case, and of the others, which begin with the weights of a larger case.
constexpr int kFirstSweeps = 24;
constexpr int kSweeps = 1;
// A sweep changes each weight by a factor; when no change helps, the next sweep takes the root of it.
constexpr double kFirstFactor = 4;
constexpr double kLeastFactor = 1.05;
constexpr double kLeastShare = 0.002;  // least weight, relative to the largest: a weight of 0 could not be raised

using Shares = std::array<double, 2 * kMaxCutStages>;  // weights of compute, then of transfers

struct Case {
  StageRanges ranges;
  Shares shares{};
  BorderChoice choice = BorderChoice::all_alike;
  int64_t bound_ns = 0;
  int64_t number = 0;
};

struct IsLonger {
  bool operator()(const Case& a, const Case& b) const {
    return std::pair(a.bound_ns, a.number) > std::pair(b.bound_ns, b.number);
  }
};

using UnitSet = std::vector<uint64_t>;  // a bit for each unit

bool has(const UnitSet& set, int32_t unit) { return (set[as_index(unit) / 64] >> (as_index(unit) % 64) & 1) != 0; }
void add(UnitSet& set, int32_t unit) { set[as_index(unit) / 64] |= uint64_t{1} << (as_index(unit) % 64); }
void add_all(UnitSet& set, const UnitSet& other) {
  for (size_t word = 0; word < set.size(); ++word) set[word] |= other[word];
}
int64_t count_both(const UnitSet& a, const UnitSet& b) {
  int64_t sum = 0;
  for (size_t word = 0; word < a.size(); ++word) sum += std::popcount(a[word] & b[word]);
  return sum;
}

class Brancher {
 public:
  Brancher(const SplitGraph& graph, int64_t goal_ns, int64_t max_steps, const VisitStages& found)
      : graph_(graph),
        goal_ns_(goal_ns),
        max_steps_(max_steps),
        found_(found),
        stages_(graph.devices.num_devices),
        overlaps_(any_overlaps(graph)),
        cut_(graph) {
    const UnitSet none((as_index(graph.num_units) + 63) / 64, 0);
    before_.assign(as_index(graph.num_units), none);
    after_ = before_;
    for (int32_t unit = 0; unit < graph.num_units; ++unit) {
      add(before_[as_index(unit)], unit);
      for (const int32_t tensor : graph.inputs[as_index(unit)])
        add_all(before_[as_index(unit)], before_[as_index(graph.tensor_producer[as_index(tensor)])]);
    }
    for (int32_t unit = graph.num_units; unit-- > 0;) {
      add(after_[as_index(unit)], unit);
      for (const int32_t tensor : graph.outputs[as_index(unit)]) {
        for (const int32_t consumer : graph.tensor_consumers[as_index(tensor)])
          add_all(after_[as_index(unit)], after_[as_index(consumer)]);
      }
    }
  }

  int64_t run() {
    Case all;
    all.ranges.first.assign(as_index(graph_.num_units), 0);
    all.ranges.last.assign(as_index(graph_.num_units), static_cast<int8_t>(stages_ - 1));
    for (size_t stage = 0; stage < as_index(stages_); ++stage) {
      all.shares[stage] = 1;
      if (overlaps_) all.shares[stage + kMaxCutStages] = 0.5;
    }
    raise_bound(all, kFirstSweeps);
    open(std::move(all));
    while (!open_.empty()) {
      const Case next = open_.top();
      open_.pop();
      if (cut_.steps() >= max_steps_ || !split(next)) return next.bound_ns;
    }
    return goal_ns_;
  }

  int64_t steps() const { return cut_.steps(); }

 private:
  void open(Case&& one) {
    one.number = ++cases_;
    if (one.bound_ns < goal_ns_) open_.push(std::move(one));
  }

  // Opens both parts of a case. Returns false when each unit has one stage.
  bool split(const Case& one) {
    int64_t most = 0;
    int32_t chosen = -1, chosen_border = 0;
    for (int32_t border = 1; border < stages_; ++border) {
      UnitSet undecided((as_index(graph_.num_units) + 63) / 64, 0);
      for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
        if (is_undecided(one.ranges, unit, border)) add(undecided, unit);
      }
      for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
        if (!has(undecided, unit)) continue;
        const int64_t decided =
            std::min(count_both(before_[as_index(unit)], undecided), count_both(after_[as_index(unit)], undecided));
        if (decided <= most) continue;
        most = decided;
        chosen = unit;
        chosen_border = border;
      }
    }
    if (chosen < 0) return false;
    Case below = one, above = one;
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      int8_t &last = below.ranges.last[as_index(unit)], &first = above.ranges.first[as_index(unit)];
      if (has(before_[as_index(chosen)], unit)) last = std::min(last, static_cast<int8_t>(chosen_border - 1));
      if (has(after_[as_index(chosen)], unit)) first = std::max(first, static_cast<int8_t>(chosen_border));
    }
    for (Case* part : {&below, &above}) {
      raise_bound(*part, kSweeps);
      open(std::move(*part));
    }
    return true;
  }

  static bool is_undecided(const StageRanges& ranges, int32_t unit, int32_t border) {
    return ranges.first[as_index(unit)] < border && border <= ranges.last[as_index(unit)];
  }

  void raise_bound(Case& one, int sweeps) {
    one.bound_ns = std::max(one.bound_ns, compute_bound(one.ranges));
    int64_t least = -1;  // by the case's weights; its bound may be above it
    const Case start = one;
    for (const auto choice : {BorderChoice::all_alike, BorderChoice::lowest_first, BorderChoice::highest_first})
      try_weights(one, start.shares, choice, least);
    double factor = kFirstFactor;
    for (int sweep = 0; sweep < sweeps && factor > kLeastFactor && one.bound_ns < goal_ns_; ++sweep) {
      if (!sweep_weights(one, factor, least)) factor = std::sqrt(factor);
    }
  }

  // Raises or lowers each weight by a factor. Returns whether some change helped.
  bool sweep_weights(Case& one, double factor, int64_t& least) {
    bool grew = false;
    for (size_t i = 0; i < one.shares.size(); ++i) {
      if (one.shares[i] == 0) continue;
      for (const double change : {factor, 1 / factor}) {
        Shares shares = one.shares;
        shares[i] *= change;
        const double most = *std::max_element(shares.begin(), shares.end());
        for (double& share : shares) share = share == 0 ? 0 : std::max(share / most, kLeastShare);
        if (!try_weights(one, shares, one.choice, least)) continue;
        grew = true;
        break;
      }
    }
    return grew;
  }

  // Gives the case these weights when its bound by them is above `least`, which is raised. Returns whether it is.
  bool try_weights(Case& one, const Shares& shares, BorderChoice choice, int64_t& least) {
    if (one.bound_ns >= goal_ns_) return false;
    const int64_t sum = cut_.least_sum(one.ranges, rounded(shares), choice, goal_ns_ * kWeightSum);
    const int64_t bound = (sum + kWeightSum - 1) / kWeightSum;
    if (sum < goal_ns_ * kWeightSum) found_(cut_.stages());
    one.bound_ns = std::max(one.bound_ns, bound);
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
  std::vector<UnitSet> before_, after_;  // by unit: with what it depends on, or with what depends on it
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
