// The units are those before (a downset without the largest unit, which is tried for all of these), those of the stage,
// and those after. For one choice of those before, the devices that they need at least leave n devices for those after.
// In a plan with a shorter period
//
//   stage: compute + tensors in and out < period,   after: compute + tensors in < n * period
//
// so that any sum of the two with weights holds as well. The least value of the left side over all ways to choose the
// stage is a minimum cut. Where transfers overlap with compute, each of the four sums is below its limit by itself.
#include "plan/pipeline/around_largest.h"

#include <algorithm>

#include "plan/pipeline/cut_network.h"
#include "plan/pipeline/lattice.h"
#include "plan/pipeline/limits.h"

namespace headrace::plan {
namespace {

// Weights of compute and of transfers: those of the stage and those of the units after it.
struct Weights {
  int64_t stage_compute, stage_transfers, after_compute, after_transfers;
};

// Where compute and transfers add up, they have one weight.
constexpr Weights kSummed[] = {{1, 1, 1, 1}, {1, 1, 0, 0}, {2, 2, 1, 1}, {1, 1, 2, 2}, {4, 4, 1, 1}};
constexpr Weights kOverlapped[] = {{1, 1, 0, 1}, {0, 1, 0, 1}, {1, 1, 0, 0}, {1, 2, 0, 1}, {2, 1, 0, 1}, {1, 1, 1, 1}};

class Refuter {
 public:
  Refuter(const SplitGraph& graph, int64_t period_ns, int64_t max_steps)
      : graph_(graph),
        period_ns_(period_ns),
        steps_left_(max_steps),
        overlaps_(any_overlaps(graph)),
        weights_(overlaps_ ? std::vector(std::begin(kOverlapped), std::end(kOverlapped))
                           : std::vector(std::begin(kSummed), std::end(kSummed))) {
    for (int32_t unit = 1; unit < graph.num_units; ++unit) {
      if (graph.fastest(unit) > graph.fastest(largest_)) largest_ = unit;
    }
    for (const int64_t bytes : graph.tensor_bytes) times_.push_back(least_transfer(graph, bytes));
  }

  bool run(int32_t max_downsets) {
    if (most_replicas(graph_) > 1) return false;
    const std::optional<Lattice> before = downsets_before(max_downsets);
    if (!before) return false;
    for (int32_t downset = 0; downset < before->size(); ++downset) {
      std::vector<int32_t> units;
      before->append_between(0, downset, units);
      if (!units.empty() && units.back() == static_cast<int32_t>(before_.size())) continue;  // has the largest unit
      if (!is_refuted(units)) return false;
    }
    return true;
  }

  int64_t steps_left() const { return steps_left_; }

 private:
  // Returns the downsets of the units that do not depend on the largest one; all others are one unit more.
  std::optional<Lattice> downsets_before(int32_t max_downsets) {
    std::vector<bool> is_rest(as_index(graph_.num_units), false);
    is_rest[as_index(largest_)] = true;
    for (int32_t unit = largest_; unit < graph_.num_units; ++unit) {
      for (const int32_t tensor : graph_.inputs[as_index(unit)]) {
        if (is_rest[as_index(graph_.tensor_producer[as_index(tensor)])]) is_rest[as_index(unit)] = true;
      }
    }
    std::vector<int32_t> group(as_index(graph_.num_units));
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      group[as_index(unit)] = static_cast<int32_t>(before_.size());
      if (!is_rest[as_index(unit)]) before_.push_back(unit);
    }
    const auto rest = static_cast<int32_t>(before_.size());
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      if (is_rest[as_index(unit)]) group[as_index(unit)] = rest;
    }
    return all_downsets(group_units(graph_, group, rest + 1), max_downsets);
  }

  // Returns whether no plan computes these units of `before_` before the stage of the largest unit, and no others.
  bool is_refuted(const std::vector<int32_t>& numbers) {
    is_before_.assign(as_index(graph_.num_units), false);
    int64_t compute = 0, out = 0;
    for (const int32_t number : numbers) {
      is_before_[as_index(before_[as_index(number)])] = true;
      compute += graph_.fastest(before_[as_index(number)]);
    }
    for (size_t tensor = 0; tensor < times_.size(); ++tensor) {
      if (leaves_before(tensor)) out += times_[tensor].out_ns;
    }
    const int64_t time = overlaps_ ? std::max(compute, out) : compute + out;
    // The period of each device before is at least 1 ns below the one asked for.
    const int64_t taken =
        numbers.empty() ? 0 : std::max<int64_t>(1, (time + period_ns_ - 2) / std::max<int64_t>(1, period_ns_ - 1));
    const int64_t left = graph_.devices.num_devices - 1 - taken;
    if (left < 0) return true;
    const auto found = std::find_if(weights_.begin(), weights_.end(), [&](const Weights& weights) {
      return left > 0 ? reaches_limit(weights, left) : is_alone_too_long(weights);
    });
    if (found == weights_.end()) return false;
    std::rotate(weights_.begin(), found, found + 1);  // whatever refuted this one may refute the next
    return true;
  }

  bool leaves_before(size_t tensor) const {
    if (!is_before_[as_index(graph_.tensor_producer[tensor])]) return false;
    const auto consumers = graph_.tensor_consumers[tensor];
    return std::any_of(consumers.begin(), consumers.end(), [&](int32_t one) { return !is_before_[as_index(one)]; });
  }

  // Returns the limit of a weighted sum.
  int64_t limit(const Weights& weights, int64_t devices_after) const {
    const int64_t of_stage = weights.stage_compute + (overlaps_ ? weights.stage_transfers : 0);
    const int64_t of_after = weights.after_compute + (overlaps_ ? weights.after_transfers : 0);
    return (of_stage + of_after * devices_after) * period_ns_;
  }

  // Returns whether the weighted sum reaches its limit however the stage is chosen.
  bool reaches_limit(const Weights& weights, int64_t devices_after) {
    if (steps_left_ <= 0) return false;
    int64_t most = limit(weights, devices_after);
    CutNetwork network(graph_.num_units);
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      if (is_before_[as_index(unit)]) continue;
      // Only what a unit costs more in the stage or after it depends on the choice.
      const int64_t in_stage = graph_.fastest(unit) * weights.stage_compute;
      const int64_t after = graph_.fastest(unit) * weights.after_compute;
      most -= std::min(in_stage, after);
      if (in_stage > after) network.add_cost(unit, in_stage - after);
      if (in_stage < after) network.add_cost_outside(unit, after - in_stage);
    }
    for (size_t tensor = 0; tensor < times_.size(); ++tensor) add_tensor(network, weights, tensor);
    const bool reaches = network.min_cut({&largest_, 1}, {}, most) >= most;
    steps_left_ -= network.steps() + graph_.num_units + static_cast<int64_t>(times_.size());
    return reaches;
  }

  // Returns whether the stage is too long that has all other units, as it must when no device is left for a later one.
  bool is_alone_too_long(const Weights& weights) const {
    int64_t sum = 0;
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      if (!is_before_[as_index(unit)]) sum += graph_.fastest(unit) * weights.stage_compute;
    }
    for (size_t tensor = 0; tensor < times_.size(); ++tensor) {
      if (leaves_before(tensor)) sum += times_[tensor].in_ns * weights.stage_transfers;
    }
    return sum >= limit(weights, 0);
  }

  // The set of the cut is the stage.
  void add_tensor(CutNetwork& network, const Weights& weights, size_t tensor) const {
    const int32_t producer = graph_.tensor_producer[tensor];
    const auto consumers = graph_.tensor_consumers[tensor];
    const LeastTransfer& time = times_[tensor];
    if (!is_before_[as_index(producer)]) {
      const int32_t out = network.add_node();
      network.add_arc(producer, out, weights.stage_transfers * time.out_ns + weights.after_transfers * time.in_ns);
      for (const int32_t consumer : consumers) {
        network.add_arc(out, consumer, kUncuttable);
        network.add_arc(consumer, producer, kUncuttable);
      }
      return;
    }
    const int32_t to_stage = network.add_node(), to_after = network.add_node();
    network.add_cost(to_stage, weights.stage_transfers * time.in_ns);
    network.add_cost_outside(to_after, weights.after_transfers * time.in_ns);
    for (const int32_t consumer : consumers) {
      if (is_before_[as_index(consumer)]) continue;
      network.add_arc(consumer, to_stage, kUncuttable);
      network.add_arc(to_after, consumer, kUncuttable);
    }
  }

  const SplitGraph& graph_;
  int64_t period_ns_, steps_left_;
  bool overlaps_;
  std::vector<Weights> weights_;
  int32_t largest_ = 0;
  std::vector<int32_t> before_;       // units that do not depend on the largest one
  std::vector<bool> is_before_;       // by unit
  std::vector<LeastTransfer> times_;  // by tensor
};

}  // namespace

bool is_refuted_around_largest(const SplitGraph& graph, int64_t period_ns, int32_t max_downsets, int64_t& max_steps) {
  Refuter refuter(graph, period_ns, max_steps);
  const bool is_refuted = refuter.run(max_downsets);
  max_steps = refuter.steps_left();
  return is_refuted;
}

}  // namespace headrace::plan
