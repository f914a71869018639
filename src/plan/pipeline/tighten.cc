#include "plan/pipeline/tighten.h"

#include <algorithm>

#include "plan/pipeline/around_largest.h"
#include "plan/pipeline/branch_and_bound.h"
#include "plan/pipeline/cut_network.h"
#include "plan/pipeline/inseparable.h"
#include "plan/pipeline/limits.h"
#include "plan/pipeline/refine.h"
#include "plan/pipeline/stage_search.h"

namespace headrace::plan {
namespace {

constexpr int kTightenRounds = 7;
constexpr int32_t kFoundRefinePasses = 12;
// Lists of downsets are as long as four times the downsets of the method `downsets`, for graphs of some 1,000 units.
constexpr int64_t kMaxDownsetUnits = 20'000'000;
// Two thirds of the steps of all proofs, by default: up to some 7 seconds for graphs of 600 to 2,000 units.
constexpr int64_t kBranchSteps = 400'000'000;
// Plans that branch and bound comes upon are refined when they are at most this much longer than the best one.
constexpr double kWorthRefining = 1.3;

class Tightener {
 public:
  Tightener(const SplitGraph& graph, const SplitOptions& options, const std::vector<DeviceStates>& states,
            Assignment& best, int64_t& lower_bound_ns)
      : graph_(graph),
        options_(options),
        states_(states),
        best_(best),
        lower_bound_ns_(lower_bound_ns),
        steps_left_(options.max_bound_steps) {}

  void run() {
    if (is_good() || best_.period_ns > kUncuttable / (16 * (graph_.devices.num_devices + 1))) return;
    if (const auto lattice = listed_downsets(graph_)) raise(search(graph_, *lattice, {}, best_.period_ns));
    // Where transfers overlap with compute, merging units hardly helps, and takes long.
    if (any_overlaps(graph_)) branch();
    if (steps_left_ < options_.max_bound_steps) return;
    merge_units();
    branch();
  }

 private:
  // The period that is a bound good enough.
  int64_t good_period() const {
    return static_cast<int64_t>(static_cast<double>(best_.period_ns) / (1 + kGoodGap)) + 1;
  }

  void merge_units() {
    int64_t open = best_.period_ns;  // the least period that could not be proved to be a bound
    for (int round = 0; round < kTightenRounds && steps_left_ > 0 && !is_good(); ++round) {
      open = std::min(open, best_.period_ns);
      const int64_t good = good_period();
      const int64_t period = good < open ? good : lower_bound_ns_ + (open - lower_bound_ns_ + 1) / 2;
      raise(proven_bound(period));
      if (lower_bound_ns_ < period) open = period;
      if (lower_bound_ns_ + 1 >= open) return;
    }
  }

  void branch() {
    if (is_good()) return;
    int64_t steps = std::min(steps_left_, kBranchSteps);
    steps_left_ -= steps;
    raise(bound_by_branches(graph_, good_period(), steps, [&](const std::vector<int32_t>& stages) {
      keep_stages(stages);
      return good_period();
    }));
    steps_left_ += steps;
  }

  // Keeps a plan whose stages run on devices of one class, all that there are, when it is the best.
  void keep_stages(const std::vector<int32_t>& stages) {
    if (graph_.num_classes() > 1) return;
    Assignment made{.stage_of_unit = stages, .stages = {}};
    std::vector<int32_t> number(as_index(graph_.devices.num_devices), 0);
    for (const int32_t stage : stages) number[as_index(stage)] = 1;
    for (int32_t& one : number) {
      if (one == 0) continue;
      one = static_cast<int32_t>(made.stages.size());
      made.stages.emplace_back();
    }
    for (int32_t& stage : made.stage_of_unit) stage = number[as_index(stage)];
    set_period(graph_, made);
    if (static_cast<double>(made.period_ns) > kWorthRefining * static_cast<double>(best_.period_ns)) return;
    refine(graph_, made, kFoundRefinePasses);
    if (made.period_ns < best_.period_ns) best_ = std::move(made);
  }

  bool is_good() const {
    return static_cast<double>(best_.period_ns) <= static_cast<double>(lower_bound_ns_) * (1 + kGoodGap);
  }
  void raise(int64_t bound_ns) { lower_bound_ns_ = std::max(lower_bound_ns_, std::min(bound_ns, best_.period_ns)); }

  std::optional<Lattice> listed_downsets(const SplitGraph& graph) const {
    const int64_t most = std::min<int64_t>(int64_t{4} * options_.max_downsets, kMaxDownsetUnits / graph.num_units);
    return all_downsets(graph, static_cast<int32_t>(most));
  }

  // Returns a period that no plan undercuts, `period_ns` at most; 0 when no proof was found.
  int64_t proven_bound(int64_t period_ns) {
    const auto merged = merge_inseparable(graph_, period_ns, steps_left_);
    if (!merged) return period_ns;
    if (const auto lattice = listed_downsets(merged->graph))
      return search(merged->graph, *lattice, merged->group, period_ns);
    return is_refuted_around_largest(merged->graph, period_ns, options_.max_downsets, steps_left_) ? period_ns : 0;
  }

  // Searches the plans of a graph, whose units may be groups, for one below the period, and keeps it when it is the
  // best. Returns a period that none undercuts.
  int64_t search(const SplitGraph& graph, const Lattice& lattice, const std::vector<int32_t>& group,
                 int64_t period_ns) {
    SegmentWalk walk(graph, lattice);
    int64_t bound = 0;
    for (const DeviceStates& states : states_) {
      SearchResult result = search_stages(walk, states, period_ns, options_.max_steps);
      if (states.is_complete) bound = result.lower_bound_ns;
      if (result.found) keep(std::move(*result.found), group);
    }
    return bound;
  }

  void keep(Assignment found, const std::vector<int32_t>& group) {
    if (!group.empty()) {
      std::vector<int32_t> stage_of_unit;
      for (const int32_t one : group) stage_of_unit.push_back(found.stage_of_unit[static_cast<size_t>(one)]);
      found.stage_of_unit = std::move(stage_of_unit);
      refine(graph_, found, kFoundRefinePasses);
    }
    if (found.period_ns < best_.period_ns) best_ = std::move(found);
  }

  const SplitGraph& graph_;
  const SplitOptions& options_;
  const std::vector<DeviceStates>& states_;
  Assignment& best_;
  int64_t& lower_bound_ns_;
  int64_t steps_left_;
};

}  // namespace

void tighten(const SplitGraph& graph, const SplitOptions& options, const std::vector<DeviceStates>& states,
             Assignment& best, int64_t& lower_bound_ns) {
  Tightener(graph, options, states, best, lower_bound_ns).run();
}

}  // namespace headrace::plan
