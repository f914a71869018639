// The text form of a simulation.
#include "base/error.h"
#include "plan/pipeline/simulate.h"
#include "plan/pipeline/table.h"

namespace headrace::plan {

std::string format_simulation(const PipelineModel& model, const Simulation& simulation) {
  std::vector<std::vector<std::string>> rows{{"stage", "group", "replicas", "busy", "starved", "blocked", "waiting"}};
  const auto percent = [](double share) { return fmt::format("{:.1f} %", share * 100); };
  for (size_t i = 0; i < model.stages.size(); ++i) {
    const SimulatedStage& stage = model.stages[i];
    const StageLoad& load = simulation.stages[i];
    rows.push_back({stage.name, model.groups[static_cast<size_t>(stage.group)].name, std::to_string(stage.replicas),
                    percent(load.busy), percent(load.starved), percent(load.blocked), percent(load.waiting)});
  }
  return fmt::format(
      "{} requests in {}: {:.1f} per second\n\n{}\nlatency     p50 {}, p90 {}, p99 {}, most {}\nbottleneck  {}\n",
      simulation.requests, format_time(simulation.measured_ns), simulation.requests_per_second, format_table(rows, 2),
      format_time(simulation.latency_p50_ns), format_time(simulation.latency_p90_ns),
      format_time(simulation.latency_p99_ns), format_time(simulation.latency_max_ns), simulation.bottleneck);
}

}  // namespace headrace::plan
