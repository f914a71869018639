// headrace bench: measures the time of a run, in rounds that alternate with another runtime.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "tools/headrace/comparison.h"
#include "tools/headrace/interleaved_timing.h"
#include "tools/headrace/output.h"
#include "tools/headrace/peer_options.h"
#include "tools/headrace/processors.h"
#include "tools/headrace/timed_model.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

struct BenchState {
  ModelOptions model;
  std::string threads = "1";
  PeerOptions peer;
  int rounds = 15;
  bool steps = false;
  uint64_t seed = 1;
};

// The shortest time of each step of a program, in nanoseconds.
using StepTimes = std::vector<uint64_t>;

// Longer than the idle threads of either runtime spin.
constexpr int kPauseMilliseconds = 20;

struct Measured {
  Times ours, peer;
  StepTimes steps;
  std::vector<int> processors;
  double difference = 0;  // of our outputs and the peer's
};

StepTimes time_steps(executors::Executor& executor, int rounds) {
  StepTimes best(executor.num_steps(), UINT64_MAX), once(best.size());
  for (int round = 0; round < rounds; ++round) {
    time_run(executor, once);
    for (size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], once[i]);
  }
  return best;
}

// Returns views of the last run's outputs in the executor's memory.
std::vector<NDArray> outputs_of(const executors::Executor& executor) {
  std::vector<NDArray> outputs;
  for (size_t i = 0; i < executor.outputs().size(); ++i) {
    const DLTensor& made = executor.output(i);
    outputs.push_back(
        NDArray::view(made.data, Shape(made.shape, made.shape + made.ndim), executor.outputs()[i].dtype, [] {}));
  }
  return outputs;
}

Measured measure(const BenchState& state, const TimedModel& subject, int threads, std::string& peer_version) {
  // Make the scope before threads and the peer are started, because they inherit its processors.
  const ProcessorScope processors(threads);
  std::map<std::string, NDArray> inputs;
  const auto executor = make_timed_executor(subject, threads, state.seed, inputs);
  std::vector<TimedRun> runs{[&] { return time_run(*executor); }};
  std::unique_ptr<Peer> peer;
  if (state.peer.is_given()) {
    inputs.merge(
        state.model.load_options(driver::CompileOptions()).bound);  // what is a constant to us is an input to the peer
    peer = state.peer.start(state.model.path, inputs, threads);
    peer_version = peer->version();
    runs.emplace_back([&] { return peer->time(); });
  }
  const std::chrono::milliseconds pause(peer && threads > 1 ? kPauseMilliseconds : 0);
  const std::vector<Times> times = time_in_turns(runs, {.rounds = state.rounds, .pause = pause});
  Measured measured{.ours = times.front(), .peer = times.back(), .steps = {}, .processors = processors.processors()};
  if (peer) measured.difference = largest_difference(outputs_of(*executor), peer->run());
  if (state.steps) measured.steps = time_steps(*executor, state.rounds);
  return measured;
}

Array<Value> report_steps(const artifact::GraphProgram& graph, const StepTimes& best) {
  Array<Value> list;
  for (size_t i = 0; i < best.size(); ++i) {
    const artifact::Step& step = graph.steps[i];
    list.push_back(Value(Report{{"op", Value(step.op)},
                                {"callee", Value(artifact::callee_of(step.action))},
                                {"shapes", Value(shapes_of(graph, step))},
                                {"best_seconds", Value(static_cast<double>(best[i]) * 1e-9)}}));
  }
  return list;
}

// The steps, one column of times a number of threads.
void print_steps(const artifact::GraphProgram& graph, const std::vector<int>& threads,
                 const std::vector<StepTimes>& best) {
  std::vector<std::vector<std::string>> rows{{"step"}};
  for (const int count : threads) rows[0].push_back(fmt::format("{} thread{}", count, count == 1 ? "" : "s"));
  rows[0].insert(rows[0].end(), {"op", "writes <- reads"});
  for (size_t i = 0; i < graph.steps.size(); ++i) {
    rows.push_back({std::to_string(i)});
    for (const StepTimes& times : best) rows.back().push_back(show_seconds(static_cast<double>(times[i]) * 1e-9));
    rows.back().insert(rows.back().end(), {graph.steps[i].op, shapes_of(graph, graph.steps[i])});
  }
  std::cout << to_table(rows);
}

// Writes the measured times to one row of the table and one object of the report.
void add_result(const BenchState& state, int threads, const Measured& measured, std::vector<std::string>& row,
                Report& one) {
  one.set("threads", Value(int64_t{threads}));
  one.set("processors", Value(Shape(measured.processors.begin(), measured.processors.end())));
  one.set("best_seconds", Value(measured.ours.best()));
  one.set("median_seconds", Value(measured.ours.median()));
  row = {std::to_string(threads), show_seconds(measured.ours.best()), show_seconds(measured.ours.median())};
  if (!state.peer.is_given()) return;
  const double ratio = measured.ours.median() / measured.peer.median();
  one.set("peer_best_seconds", Value(measured.peer.best()));
  one.set("peer_median_seconds", Value(measured.peer.median()));
  one.set("ratio", Value(ratio));
  one.set("difference", Value(measured.difference));
  row.insert(row.end(), {show_seconds(measured.peer.best()), show_seconds(measured.peer.median()),
                         fmt::format("{:.2f}", ratio), fmt::format("{:.2g}", measured.difference)});
}

int bench(const BenchState& state, const Common& common) {
  const std::vector<int> counts = parse_counts("--threads", state.threads);
  state.peer.require(state.model.path);
  const TimedModel subject = open_timed_model(state.model, common);
  std::vector<std::vector<std::string>> rows{{"threads", "best", "median"}};
  if (state.peer.is_given())
    rows[0].insert(rows[0].end(), {state.peer.name + " best", "median", "ratio of medians", "difference"});
  Array<Value> results;
  std::vector<StepTimes> steps;
  const artifact::GraphProgram& graph = default_graph(*subject.artifact);
  std::string version;
  for (const int threads : counts) {
    const Measured measured = measure(state, subject, threads, version);
    Report one;
    add_result(state, threads, measured, rows.emplace_back(), one);
    if (state.steps) one.set("steps", Value(report_steps(graph, measured.steps)));
    steps.push_back(measured.steps);
    results.push_back(Value(one));
  }
  if (common.json) {
    std::cout << to_json({{"model", Value(state.model.path)},
                          {"rounds", Value(int64_t{state.rounds})},
                          {"peer", version.empty() ? Value() : Value(state.peer.name + " " + version)},
                          {"results", Value(results)}});
  } else {
    std::cout << to_table(rows);
    if (state.steps) print_steps(graph, counts, steps);
  }
  return HR_OK;
}

constexpr const char* kBenchFooter =
    "Timed is the call that runs the model, with inputs and outputs bound before: ours in this process, "
    "run_with_iobinding\n"
    "of onnxruntime in a Python process of its own, by the clock of that process. Both have the same number of "
    "threads\n"
    "(one of them works on ops side by side) on the same processors, as many as there are threads. The threads of "
    "both\n"
    "may spin while they wait; with several there is a pause of 20 ms before each run, until those of the other "
    "sleep.\n"
    "Example: headrace bench model.onnx --shape x=1,3,224,224 --threads 1,2 --against onnxruntime";

}  // namespace

Verb add_bench(CLI::App& app, const Common& common) {
  auto state = std::make_shared<BenchState>();
  CLI::App* verb = app.add_subcommand("bench", "Time a model, taking turns with another runtime");
  state->model.add_to(*verb, "A model (.onnx, .relay), or an artifact (.so)");
  verb->add_option("--threads", state->threads, "Numbers of threads to time, as 1,2")->capture_default_str();
  state->peer.add_to(*verb, "Another runtime on the same model and inputs");
  takes(verb->add_option("--rounds", state->rounds, "Rounds; each runs ours once, then the peer once"), {1, 100000, 15})
      ->capture_default_str();
  verb->add_flag("--steps", state->steps, "Also the best time of each step, in rounds of their own");
  takes(verb->add_option("--seed", state->seed, "Of the random inputs"), {0, INT64_MAX, 1})->capture_default_str();
  verb->footer(kBenchFooter);
  return [state, &common] { return bench(*state, common); };
}

}  // namespace headrace::tools
