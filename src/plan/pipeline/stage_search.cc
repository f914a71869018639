#include "plan/pipeline/stage_search.h"

#include <algorithm>

#include "plan/pipeline/border_times.h"
#include "plan/pipeline/limits.h"

namespace headrace::plan {
namespace {

class StageSearch {
 public:
  StageSearch(SegmentWalk& walk, const DeviceStates& states, int64_t limit_ns, int64_t max_steps)
      : walk_(walk),
        graph_(walk.graph()),
        lattice_(walk.lattice()),
        states_(states),
        limit_ns_(limit_ns),
        steps_left_(max_steps),
        borders_(border_times(walk.graph(), walk.lattice())),
        transfer_share_(any_overlaps(graph_) ? 0 : 1) {
    num_states_ = static_cast<size_t>(states.size());
    by_device_.resize(graph_.num_classes() * static_cast<size_t>(graph_.max_replicas));
    for (const DeviceStates::Step& step : states.steps)
      by_device_[place_of(step.device_class, step.replicas)].push_back(step);
    find_fastest_sums();
    find_capacities();
  }

  SearchResult run() {
    bounds_.assign(static_cast<size_t>(lattice_.size()) * num_states_, kNever);
    bounds_[0] = 0;
    for (int32_t end = 1; end < lattice_.size(); ++end) fill_bounds(end);
    const int32_t full = lattice_.size() - 1;
    std::vector<int32_t> ends(num_states_);
    for (size_t i = 0; i < num_states_; ++i) ends[i] = static_cast<int32_t>(i);
    std::stable_sort(ends.begin(), ends.end(), [&](int32_t a, int32_t b) {
      return std::pair(bound(full, a), states_.used[static_cast<size_t>(a)]) <
             std::pair(bound(full, b), states_.used[static_cast<size_t>(b)]);
    });
    SearchResult result;
    result.lower_bound_ns = std::min(limit_ns_, bound(full, ends.front()));
    partial_.stage_of_unit.assign(static_cast<size_t>(graph_.num_units), -1);
    for (const int32_t state : ends) {
      if (bound(full, state) < limit_ns_) place_stage(full, state, 0);
    }
    if (steps_left_ >= 0) result.lower_bound_ns = limit_ns_;
    result.found = std::move(best_);
    return result;
  }

 private:
  // A last stage of a downset: it begins at `below`, with the devices of `from` taken before.
  struct Choice {
    int64_t bound_ns;  // lower bound for the whole
    int32_t below, from;
    StageDevices devices;
  };

  size_t place_of(int32_t device_class, int32_t replicas) const {
    return static_cast<size_t>(device_class * graph_.max_replicas + replicas - 1);
  }
  int64_t& bound(int32_t downset, int32_t state) {
    return bounds_[static_cast<size_t>(downset) * num_states_ + static_cast<size_t>(state)];
  }

  void find_fastest_sums() {
    fastest_.assign(static_cast<size_t>(lattice_.size()), 0);
    for (int32_t downset = 1; downset < lattice_.size(); ++downset) {
      const Lattice::Step step = lattice_.below(downset).front();
      fastest_[static_cast<size_t>(downset)] =
          std::min(kNever, fastest_[static_cast<size_t>(step.below)] + graph_.fastest(step.unit));
    }
  }

  // Finds the most that the devices of each state are worth: a device counts as the share of a unit's time on a device
  // of its class that the fastest device needs, for the unit where that share is largest.
  void find_capacities() {
    std::vector<double> worth(graph_.num_classes(), 0);
    for (int32_t unit = 0; unit < graph_.num_units; ++unit) {
      const auto fastest = static_cast<double>(graph_.fastest(unit));
      for (size_t i = 0; i < worth.size() && fastest > 0; ++i)
        worth[i] = std::max(worth[i], fastest / static_cast<double>(graph_.compute(unit, i)));
    }
    for (const double one : worth) transfer_share_ = std::min(transfer_share_, one);
    capacity_.assign(num_states_, 0);
    for (size_t at = 0; at < states_.counts.size(); ++at)
      capacity_[at / worth.size()] += worth[at % worth.size()] * states_.counts[at];
    for (size_t i = 0; i < worth.size(); ++i)
      whole_capacity_ += worth[i] * static_cast<double>(graph_.devices.classes[i].devices.size());
  }

  // Returns whether a plan below the limit may have computed the downset with the devices of the state: neither those
  // taken nor those left have less time than the fastest computation and the tensors that cross the border need.
  bool may_meet(int32_t downset, int32_t state) const {
    const auto at = static_cast<size_t>(downset);
    const auto out = static_cast<double>(borders_.out_ns[at]), in = static_cast<double>(borders_.in_ns[at]);
    const auto before = static_cast<double>(fastest_[at]);
    const double behind = static_cast<double>(fastest_.back()) - before;
    const double capacity = capacity_[static_cast<size_t>(state)];
    const auto limit = static_cast<double>(limit_ns_) * (1 + 1e-9);  // sums of doubles round
    const auto taken = static_cast<double>(states_.used[static_cast<size_t>(state)]);
    if (out > limit * taken || in > limit * (graph_.devices.num_devices - taken)) return false;
    return before + transfer_share_ * out <= limit * capacity + 1e-3 &&
           behind + transfer_share_ * in <= limit * (whole_capacity_ - capacity) * (1 + 1e-9) + 1e-3;
  }

  // Calls visit(step, period) for each way to take devices for the segment that may be below the limit.
  template <typename Visit>
  void each_choice(const Segment& segment, const Visit& visit) {
    for (size_t i = 0; i < graph_.num_classes(); ++i) {
      const DeviceClass& device = graph_.devices.classes[i];
      if (segment.memory_bytes > device.memory_bytes) continue;
      const int64_t time = device.stage_time(segment.compute_ns[i], segment.in_ns[i] + segment.out_ns[i]);
      if (time >= kNever) continue;
      for (int32_t replicas = 1; replicas <= graph_.max_replicas; ++replicas) {
        const int64_t period = (time + replicas - 1) / replicas;
        if (period >= limit_ns_) continue;
        for (const DeviceStates::Step& step : by_device_[place_of(static_cast<int32_t>(i), replicas)])
          visit(step, period);
      }
    }
  }

  int64_t max_time_ns() const {
    return limit_ns_ > kNever / graph_.max_replicas ? kNever - 1 : limit_ns_ * graph_.max_replicas;
  }

  void fill_bounds(int32_t end) {
    std::vector<bool> is_open(num_states_);
    bool any = false;
    for (size_t state = 0; state < num_states_; ++state) {
      is_open[state] = may_meet(end, static_cast<int32_t>(state));
      any = any || is_open[state];
    }
    if (!any) return;
    walk_.walk(end, max_time_ns(), [&](int32_t below, const Segment& segment) {
      each_choice(segment, [&](const DeviceStates::Step& step, int64_t period) {
        if (!is_open[static_cast<size_t>(step.to)]) return;
        int64_t& least = bound(end, step.to);
        least = std::min(least, std::max(period, bound(below, step.from)));
      });
    });
  }

  std::vector<Choice> choices(int32_t end, int32_t state) {
    std::vector<Choice> made;
    walk_.walk(end, max_time_ns(), [&](int32_t below, const Segment& segment) {
      --steps_left_;
      each_choice(segment, [&](const DeviceStates::Step& step, int64_t period) {
        const int64_t least = std::max(period, bound(below, step.from));
        if (step.to == state && least < limit_ns_)
          made.push_back({least, below, step.from, {step.device_class, step.replicas}});
      });
    });
    std::stable_sort(made.begin(), made.end(), [&](const Choice& a, const Choice& b) {
      return std::pair(a.bound_ns, states_.used[static_cast<size_t>(a.from)]) <
             std::pair(b.bound_ns, states_.used[static_cast<size_t>(b.from)]);
    });
    return made;
  }

  // Chooses the last stage of a downset, then those before it. Stages are numbered from the last one. The depth is the
  // number of stages.
  void place_stage(int32_t end, int32_t state, int32_t stage) {
    for (const Choice& choice : choices(end, state)) {
      if (steps_left_ < 0 || choice.bound_ns >= limit_ns_) return;
      std::vector<int32_t> units;
      lattice_.append_between(choice.below, end, units);
      for (const int32_t unit : units) partial_.stage_of_unit[static_cast<size_t>(unit)] = stage;
      partial_.stages.push_back(choice.devices);
      if (least_period(units, stage) < limit_ns_) {
        if (choice.below != 0) {
          place_stage(choice.below, choice.from, stage + 1);
        } else {
          finish();
        }
      }
      partial_.stages.pop_back();
      for (const int32_t unit : units) partial_.stage_of_unit[static_cast<size_t>(unit)] = -1;
    }
  }

  // Returns the period of the stage added last: exact but for transfers in, whose links are not known.
  int64_t least_period(const std::vector<int32_t>& units, int32_t stage) {
    const auto device_class = static_cast<size_t>(partial_.stages.back().device_class);
    const auto stage_of = [&](int32_t unit) { return partial_.stage_of_unit[static_cast<size_t>(unit)]; };
    StageCost cost;
    std::vector<int32_t> inputs, readers;
    for (const int32_t unit : units) {
      cost.compute_ns = std::min(kNever, cost.compute_ns + graph_.compute(unit, device_class));
      for (const int32_t input : graph_.inputs[static_cast<size_t>(unit)]) {
        if (stage_of(graph_.tensor_producer[static_cast<size_t>(input)]) < 0) inputs.push_back(input);
      }
      for (const int32_t output : graph_.outputs[static_cast<size_t>(unit)]) {
        collect_stages(graph_.tensor_consumers[static_cast<size_t>(output)], partial_.stage_of_unit, stage, readers);
        for (const int32_t to : readers)
          cost.out_ns += graph_.devices.transfer_ns(
              device_class, static_cast<size_t>(partial_.stages[static_cast<size_t>(to)].device_class),
              graph_.tensor_bytes[static_cast<size_t>(output)]);
      }
    }
    std::sort(inputs.begin(), inputs.end());
    inputs.erase(std::unique(inputs.begin(), inputs.end()), inputs.end());
    for (const int32_t input : inputs)
      cost.in_ns += graph_.devices.least_in_ns(device_class, graph_.tensor_bytes[static_cast<size_t>(input)]);
    return stage_period(graph_, partial_.stages.back(), cost);
  }

  // Keeps the plan whose stages have all been chosen, if it is better than the limit.
  void finish() {
    Assignment made = partial_;
    const auto last = static_cast<int32_t>(made.stages.size()) - 1;
    for (int32_t& stage : made.stage_of_unit) stage = last - stage;
    std::reverse(made.stages.begin(), made.stages.end());
    set_period(graph_, made);
    if (made.period_ns >= limit_ns_) return;
    limit_ns_ = made.period_ns;
    best_ = std::move(made);
  }

  SegmentWalk& walk_;
  const SplitGraph& graph_;
  const Lattice& lattice_;
  const DeviceStates& states_;
  int64_t limit_ns_;  // plans past it are not looked for
  int64_t steps_left_;
  size_t num_states_ = 0;
  std::vector<std::vector<DeviceStates::Step>> by_device_;  // by class and replicas
  std::vector<int64_t> fastest_;                            // by downset: the sum of its units' least times
  std::vector<double> capacity_;                            // by state
  double whole_capacity_ = 0;
  BorderTimes borders_;
  double transfer_share_;        // the least capacity that 1 ns of transfers takes
  std::vector<int64_t> bounds_;  // [downset * number of states + state]
  Assignment partial_;           // stages from the last one
  std::optional<Assignment> best_;
};

}  // namespace

SearchResult search_stages(SegmentWalk& walk, const DeviceStates& states, int64_t limit_ns, int64_t max_steps) {
  return StageSearch(walk, states, limit_ns, max_steps).run();
}

}  // namespace headrace::plan
