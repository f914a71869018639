#include "plan/pipeline/assignment.h"

#include <algorithm>

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

std::vector<StageCost> stage_costs(const SplitGraph& graph, const Assignment& assignment) {
  std::vector<StageCost> costs(assignment.stages.size());
  std::vector<int64_t> working(costs.size(), 0);
  const auto class_of = [&](int32_t stage) {
    return static_cast<size_t>(assignment.stages[static_cast<size_t>(stage)].device_class);
  };
  for (int32_t unit = 0; unit < graph.num_units; ++unit) {
    const int32_t stage = assignment.stage_of_unit[static_cast<size_t>(unit)];
    StageCost& cost = costs[static_cast<size_t>(stage)];
    cost.compute_ns = std::min(kNever, cost.compute_ns + graph.compute(unit, class_of(stage)));
    cost.memory_bytes += graph.constant_bytes[static_cast<size_t>(unit)];
    int64_t& most = working[static_cast<size_t>(stage)];
    most = std::max(most, graph.working_bytes[static_cast<size_t>(unit)]);
  }
  for (size_t stage = 0; stage < costs.size(); ++stage) costs[stage].memory_bytes += working[stage];
  std::vector<int32_t> stages;
  for (size_t tensor = 0; tensor < graph.tensor_bytes.size(); ++tensor) {
    const int32_t from = assignment.stage_of_unit[static_cast<size_t>(graph.tensor_producer[tensor])];
    const int64_t bytes = graph.tensor_bytes[tensor];
    collect_stages(graph.tensor_consumers[tensor], assignment.stage_of_unit, from, stages);
    for (const int32_t to : stages) {
      const int64_t time = graph.devices.transfer_ns(class_of(from), class_of(to), bytes);
      costs[static_cast<size_t>(from)].out_ns += time;
      costs[static_cast<size_t>(to)].in_ns += time;
      costs[static_cast<size_t>(to)].memory_bytes += kBorderCopies * bytes;
    }
    if (!stages.empty()) costs[static_cast<size_t>(from)].memory_bytes += kBorderCopies * bytes;
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
