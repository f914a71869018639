#include "plan/pipeline/assignment.h"

#include <algorithm>

#include "executors/pipeline/slots.h"

namespace headrace::plan {

void collect_stages(std::span<const int32_t> units, const std::vector<int32_t>& stage_of_unit, int32_t left_out,
                    std::vector<int32_t>& made) {
  made.clear();
  for (const int32_t unit : units) {
    const int32_t stage = stage_of_unit[static_cast<size_t>(unit)];
    if (stage != left_out) made.push_back(stage);
  }
  std::sort(made.begin(), made.end());
  made.erase(std::unique(made.begin(), made.end()), made.end());
}

BorderSlots::BorderSlots(const SplitGraph& graph, const Assignment& assignment)
    : num_stages_(assignment.stages.size()), slots_(num_stages_ * num_stages_) {
  for (size_t from = 0; from < num_stages_; ++from) {
    for (size_t to = from + 1; to < num_stages_; ++to)
      between(from, to) = static_cast<int32_t>(to - from) + 1 + (to - from > 1 ? executors::kJitterSlots : 0);
  }
  std::vector<executors::StageEdge> edges;
  std::vector<bool> is_known(slots_.size(), false);
  std::vector<int32_t> readers;
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    const int32_t from = assignment.stage_of_unit[static_cast<size_t>(graph.tensor_producer[tensor])];
    collect_stages(graph.tensor_consumers[tensor], assignment.stage_of_unit, from, readers);
    for (const int32_t to : readers) {
      const size_t pair = static_cast<size_t>(from) * num_stages_ + static_cast<size_t>(to);
      if (!is_known[pair]) edges.push_back({from, to});
      is_known[pair] = true;
    }
  }
  const std::vector<int32_t> needed = executors::slots_of_edges(static_cast<int32_t>(num_stages_), edges);
  for (size_t i = 0; i < edges.size(); ++i)
    between(static_cast<size_t>(edges[i].producer), static_cast<size_t>(edges[i].consumer)) = needed[i];
  for (size_t from = 0; from < num_stages_; ++from) {
    for (size_t to = from + 1; to < num_stages_; ++to)
      between(from, to) += assignment.stages[from].replicas + assignment.stages[to].replicas - 2;
  }
}

int64_t BorderSlots::of(int32_t from, std::span<const int32_t> readers) const {
  int32_t most = 0;
  for (const int32_t to : readers)
    most = std::max(most, slots_[static_cast<size_t>(from) * num_stages_ + static_cast<size_t>(to)]);
  return most;
}

std::vector<StageCost> stage_costs(const SplitGraph& graph, const Assignment& assignment) {
  return stage_costs(graph, assignment, BorderSlots(graph, assignment));
}

std::vector<StageCost> stage_costs(const SplitGraph& graph, const Assignment& assignment, const BorderSlots& slots) {
  std::vector<StageCost> costs(assignment.stages.size());
  const auto class_of = [&](int32_t stage) {
    return static_cast<size_t>(assignment.stages[static_cast<size_t>(stage)].device_class);
  };
  for (int32_t unit = 0; unit < graph.num_units; ++unit) {
    const int32_t stage = assignment.stage_of_unit[static_cast<size_t>(unit)];
    StageCost& cost = costs[static_cast<size_t>(stage)];
    cost.compute_ns = std::min(kNever, cost.compute_ns + graph.compute(unit, class_of(stage)));
    cost.memory_bytes += graph.constant_bytes[static_cast<size_t>(unit)];
  }
  const std::vector<int64_t> working =
      working_memory(graph.buffers, graph.working_bytes, assignment.stage_of_unit, costs.size());
  for (size_t stage = 0; stage < costs.size(); ++stage) costs[stage].memory_bytes += working[stage];
  std::vector<int32_t> stages;
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    const int32_t from = assignment.stage_of_unit[static_cast<size_t>(graph.tensor_producer[tensor])];
    const int64_t bytes = graph.tensor_bytes[tensor];
    collect_stages(graph.tensor_consumers[tensor], assignment.stage_of_unit, from, stages);
    const int64_t slot_bytes = slots.of(from, stages) * bytes;
    for (const int32_t to : stages) {
      const int64_t time = graph.devices.transfer_ns(class_of(from), class_of(to), bytes);
      costs[static_cast<size_t>(from)].out_ns += time;
      costs[static_cast<size_t>(to)].in_ns += time;
      costs[static_cast<size_t>(to)].memory_bytes += slot_bytes;
    }
    costs[static_cast<size_t>(from)].memory_bytes += slot_bytes;
  }
  for (size_t shared = 0; shared < graph.shared_bytes.size(); ++shared) {
    collect_stages(graph.shared_consumers[shared], assignment.stage_of_unit, -1, stages);
    for (const int32_t stage : stages) costs[static_cast<size_t>(stage)].memory_bytes += graph.shared_bytes[shared];
  }
  return costs;
}

int64_t stage_time(const SplitGraph& graph, StageDevices stage, const StageCost& cost) {
  return graph.devices.classes[static_cast<size_t>(stage.device_class)].stage_time(cost.compute_ns,
                                                                                   cost.in_ns + cost.out_ns);
}

int64_t stage_period(const SplitGraph& graph, StageDevices stage, const StageCost& cost) {
  if (cost.memory_bytes > graph.devices.classes[static_cast<size_t>(stage.device_class)].memory_bytes) return kNever;
  const int64_t time = stage_time(graph, stage, cost);
  return time >= kNever ? kNever : (time + stage.replicas - 1) / stage.replicas;
}

void set_period(const SplitGraph& graph, Assignment& assignment) {
  const std::vector<StageCost> costs = stage_costs(graph, assignment);
  assignment.period_ns = 0;
  for (size_t stage = 0; stage < costs.size(); ++stage)
    assignment.period_ns = std::max(assignment.period_ns, stage_period(graph, assignment.stages[stage], costs[stage]));
}

}  // namespace headrace::plan
