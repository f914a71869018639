// The text form of a plan.
#include <algorithm>

#include "base/count_of.h"
#include "base/error.h"
#include "plan/pipeline/split.h"
#include "plan/pipeline/table.h"

namespace headrace::plan {
namespace {

std::string stage_table(const SplitProblem& problem, const SplitPlan& plan) {
  std::vector<std::vector<std::string>> rows{
      {"stage", "devices", "nodes", "compute", "in", "out", "time", "period", "memory"}};
  for (size_t i = 0; i < plan.stages.size(); ++i) {
    const SplitStage& stage = plan.stages[i];
    std::string devices;
    for (const int32_t device : stage.devices)
      devices += fmt::format("{}{}", devices.empty() ? "" : ",", problem.devices[static_cast<size_t>(device)].name);
    rows.push_back({std::to_string(i), devices, std::to_string(stage.num_nodes), format_time(stage.compute_ns),
                    format_time(stage.transfer_in_ns), format_time(stage.transfer_out_ns), format_time(stage.time_ns),
                    format_time(stage.period_ns), format_bytes(stage.memory_bytes)});
  }
  return format_table(rows, 2);
}

// Leaves out devices without a stage and without a limit, because a host may offer many.
std::string device_table(const SplitProblem& problem, const SplitPlan& plan) {
  std::vector<std::vector<std::string>> rows{{"device", "kind", "stage", "memory", "of"}};
  for (size_t device = 0; device < problem.devices.size(); ++device) {
    const SplitDevice& one = problem.devices[device];
    const auto stage = std::find_if(plan.stages.begin(), plan.stages.end(), [&](const SplitStage& candidate) {
      return std::count(candidate.devices.begin(), candidate.devices.end(), static_cast<int32_t>(device)) > 0;
    });
    const bool is_used = stage != plan.stages.end();
    if (!is_used && one.memory_bytes == kNoMemoryLimit) continue;
    rows.push_back({one.name, problem.kinds[static_cast<size_t>(one.kind)],
                    is_used ? std::to_string(stage - plan.stages.begin()) : "-",
                    is_used ? format_bytes(stage->memory_bytes) : "-",
                    one.memory_bytes == kNoMemoryLimit ? "no limit" : format_bytes(one.memory_bytes)});
  }
  return format_table(rows, 2);
}

}  // namespace

std::string format_plan(const SplitProblem& problem, const SplitPlan& plan) {
  const auto slowest = std::max_element(plan.stages.begin(), plan.stages.end(),
                                        [](const auto& a, const auto& b) { return a.period_ns < b.period_ns; });
  const std::string searched =
      plan.num_downsets > 0 ? fmt::format("{} downsets", plan.num_downsets) : "too many downsets to list";
  const std::string proof = plan.is_optimal() ? "optimal" : fmt::format("gap at most {:.2f} %", plan.gap() * 100);
  return fmt::format("{} of {} ({}, {}), by {}\n\n{}\n{}\nperiod       {} (stage {})\nlower bound  {} ({})\n",
                     count_of(plan.stages.size(), "stage"), count_of(problem.nodes.size(), "node"),
                     count_of(plan.num_units, "unit"), searched, to_string(plan.method), stage_table(problem, plan),
                     device_table(problem, plan), format_time(plan.period_ns), slowest - plan.stages.begin(),
                     format_time(plan.lower_bound_ns), proof);
}

}  // namespace headrace::plan
