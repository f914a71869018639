#include "bench/split.h"

#include <chrono>
#include <functional>

#include "object/array.h"
#include "tests/kit/split_networks.h"

namespace headrace::bench {

namespace {

using tools::Report;

Report measure_graph(const std::string& name, const plan::SplitProblem& problem, int rounds) {
  plan::SplitPlan found;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    found = plan::split_pipeline(problem);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (round == 0 || seconds.count() < best) best = seconds.count();
  }
  return {{"name", Value(name)},
          {"nodes", Value(static_cast<int64_t>(problem.nodes.size()))},
          {"downsets", Value(int64_t{found.num_downsets})},
          {"method", Value(std::string(to_string(found.method)))},
          {"stages", Value(static_cast<int64_t>(found.stages.size()))},
          {"period_seconds", Value(static_cast<double>(found.period_ns) / 1e9)},
          {"gap", Value(found.gap())},
          {"best_seconds", Value(best)}};
}

}  // namespace

Report measure_split(const SplitBenchOptions& options) {
  Array<Value> graphs;
  for (const bool overlaps : {false, true}) {
    const kit::SplitMachine machine{.gpus = options.devices, .overlaps = overlaps};
    const std::vector<std::pair<std::string, plan::SplitProblem>> problems{
        {"inception, fused", kit::inception(machine, true)},
        {"inception", kit::inception(machine, false)},
        {"bert24", kit::bert24(machine, false)},
        {"bert24 training", kit::bert24(machine, true)},
        {"resnet50 training", kit::resnet50_training(machine)},
        {"gnmt", kit::gnmt(machine, 50)},
        {"residual blocks", kit::residual_stack(machine, options.nodes)}};
    for (const auto& [name, problem] : problems)
      graphs.push_back(Value(measure_graph(name + (overlaps ? ", overlapped" : ""), problem, options.rounds)));
  }
  return {{"graphs", Value(graphs)}};
}

}  // namespace headrace::bench
