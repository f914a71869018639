#include "bench/labels.h"

#include <chrono>
#include <utility>

#include "bench/stacked_blocks.h"
#include "graph/labels.h"
#include "tests/kit/random.h"
#include "object/array.h"

namespace headrace::bench {

namespace {

using tools::Report;
graph::LabelProblem make_stack(const Block& block, const LabelBenchOptions& options) {
  kit::Random random(1);
  const auto size = static_cast<int32_t>(block.size());
  graph::LabelProblem problem{.num_nodes = std::max(options.nodes / size, 1) * size, .num_labels = options.labels};
  for (int64_t i = 0; i < int64_t{problem.num_nodes} * options.labels; ++i)
    problem.costs.push_back(random.integer(0, 1'000'000));
  constexpr int32_t kTables = 16;
  for (int32_t table = 0; table < kTables; ++table) {
    problem.tables.emplace_back();
    for (int32_t i = 0; i < options.labels * options.labels; ++i)
      problem.tables.back().push_back(random.integer(100'000, 500'000));
  }
  for (int32_t node = 0; node < problem.num_nodes; ++node)
    problem.shared.push_back({node, {}, static_cast<int32_t>(random.integer(0, kTables - 1))});
  for (int32_t node = 0; node < problem.num_nodes; ++node) {
    const int32_t begin = node - node % size;
    for (const int32_t input : block[static_cast<size_t>(node - begin)]) {
      if (begin + input >= 0) problem.shared[static_cast<size_t>(begin + input)].consumers.push_back(node);
    }
  }
  return problem;
}

Report measure(const std::string& name, const graph::LabelProblem& problem, int rounds, graph::LabelMethod method) {
  graph::Labelling found;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto begin = std::chrono::steady_clock::now();
    found = graph::find_labels(problem, {.method = method});
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    if (round == 0 || seconds.count() < best) best = seconds.count();
  }
  return {{"name", Value(name)},
          {"nodes", Value(int64_t{problem.num_nodes})},
          {"labels", Value(int64_t{problem.num_labels})},
          {"method", Value(std::string(to_string(found.method)))},
          {"best_seconds", Value(best)},
          {"cost", Value(found.cost)},
          {"gap", Value(found.cost == 0 ? 0.0 : static_cast<double>(found.gap()) / static_cast<double>(found.cost))}};
}

}  // namespace

Report measure_labels(const LabelBenchOptions& options) {
  Array<Value> problems;
  for (const auto& [name, block] : {std::pair("residual", &kResidual), std::pair("attention", &kAttention)}) {
    const graph::LabelProblem problem = make_stack(*block, options);
    for (const auto method : {graph::LabelMethod::elimination, graph::LabelMethod::moves})
      problems.push_back(Value(measure(name, problem, options.rounds, method)));
  }
  return {{"problems", Value(problems)}};
}

}  // namespace headrace::bench
