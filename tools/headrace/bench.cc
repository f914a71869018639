// headrace bench: seconds a run, in rounds that take turns with another runtime.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "tools/headrace/output.h"
#include "tools/headrace/peer.h"
#include "tools/headrace/session.h"
#include "tools/headrace/usage.h"
#include "tools/headrace/tensors.h"

namespace headrace::tools {

namespace {

struct BenchState {
  ModelOptions model;
  std::string threads = "1";
  std::string against;
  int rounds = 15;
  bool steps = false;
  uint64_t seed = 1;
};

struct Times {
  std::vector<double> seconds;
  void add(double one) { seconds.insert(std::upper_bound(seconds.begin(), seconds.end(), one), one); }
  double best() const { return seconds.front(); }
  double median() const { return seconds[seconds.size() / 2]; }
};

// The best time of each step of a program, in nanoseconds.
using StepTimes = std::vector<uint64_t>;

double time_run(executors::GraphRunner& runner, std::span<uint64_t> step_nanoseconds = {}) {
  const auto begin = std::chrono::steady_clock::now();
  const executors::RunStatus status = runner.run(step_nanoseconds);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  executors::throw_if_failed(status);
  return seconds.count();
}

struct Measured {
  Times ours, peer;
  StepTimes steps;
};

StepTimes time_steps(executors::GraphRunner& runner, int rounds) {
  StepTimes best(runner.program().graph.steps.size(), UINT64_MAX), once(best.size());
  for (int round = 0; round < rounds; ++round) {
    time_run(runner, once);
    for (size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], once[i]);
  }
  return best;
}

// What is timed; `limits` as open_or_compile gives them.
struct Subject {
  std::vector<int64_t> limits;
  std::shared_ptr<const load::Artifact> artifact;
};

NDArray random_input(const Subject& subject, size_t i, const artifact::TensorSpec& spec, uint64_t seed) {
  return random_tensor(spec, seed, i < subject.limits.size() ? subject.limits[i] : kRandomLimit);
}

Measured measure(const BenchState& state, const Subject& subject, int threads, std::string& peer_version) {
  const auto executor = load::make_executor(subject.artifact, artifact::kDefaultProgram, threads);
  executors::GraphRunner& runner = executor->runner();
  std::map<std::string, NDArray> inputs;
  for (size_t i = 0; i < runner.program().inputs.size(); ++i) {
    const artifact::TensorSpec& spec = runner.program().inputs[i];
    runner.set_input(i, inputs.emplace(spec.name, random_input(subject, i, spec, state.seed)).first->second.tensor());
  }
  std::unique_ptr<Peer> peer;
  if (!state.against.empty()) {
    inputs.merge(state.model.load_options().bound);  // what is a constant to us is an input to the peer
    peer = std::make_unique<Peer>(state.against, state.model.path, inputs, threads);
    peer_version = peer->version();
  }
  Measured measured;
  // The first run of each touches its memory and is not counted.
  time_run(runner);
  if (peer) peer->time();
  // Threads that still spin after one's run would take the processors from the other.
  const auto settle = [&] {
    if (peer && threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
  };
  for (int round = 0; round < state.rounds; ++round) {
    settle();
    measured.ours.add(time_run(runner));
    settle();
    if (peer) measured.peer.add(peer->time());
  }
  if (state.steps) measured.steps = time_steps(runner, state.rounds);
  return measured;
}

// The steps of the program that is timed; empty when the artifact has no such program (making its runner says so).
const artifact::GraphProgram& default_graph(const load::Artifact& artifact) {
  static const artifact::GraphProgram none;
  for (const artifact::Program& program : artifact.manifest().programs) {
    if (program.name == artifact::kDefaultProgram) return program.graph;
  }
  return none;
}

// "1x8x8x8 <- 1x1x8x8, 8x1x3x3": what a step writes and reads.
std::string shapes_of(const artifact::GraphProgram& graph, const artifact::Step& step) {
  const size_t num_inputs = step.args.size() - static_cast<size_t>(step.num_outputs);
  const auto list = [&](size_t begin, size_t end) {
    std::vector<std::string> shapes;
    for (size_t i = begin; i < end; ++i) {
      shapes.push_back(fmt::format("{}", fmt::join(graph.entries[static_cast<size_t>(step.args[i])].shape, "x")));
    }
    return fmt::format("{}", fmt::join(shapes, ", "));
  };
  return list(num_inputs, step.args.size()) + " <- " + list(0, num_inputs);
}

Array<Value> report_steps(const artifact::GraphProgram& graph, const StepTimes& best) {
  Array<Value> list;
  for (size_t i = 0; i < best.size(); ++i) {
    const artifact::Step& step = graph.steps[i];
    list.push_back(Value(Report{{"op", Value(step.op)},
                                {"callee", Value(step.callee)},
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

// What was measured, in one row of the table and one object of the report.
void add_result(const BenchState& state, int threads, const Measured& measured, std::vector<std::string>& row,
                Report& one) {
  one.set("threads", Value(int64_t{threads}));
  one.set("best_seconds", Value(measured.ours.best()));
  one.set("median_seconds", Value(measured.ours.median()));
  row = {std::to_string(threads), show_seconds(measured.ours.best()), show_seconds(measured.ours.median())};
  if (state.against.empty()) return;
  const double ratio = measured.ours.median() / measured.peer.median();
  one.set("peer_best_seconds", Value(measured.peer.best()));
  one.set("peer_median_seconds", Value(measured.peer.median()));
  one.set("ratio", Value(ratio));
  row.insert(row.end(),
             {show_seconds(measured.peer.best()), show_seconds(measured.peer.median()), fmt::format("{:.2f}", ratio)});
}

int bench(const BenchState& state, const Common& common) {
  const std::vector<int> counts = parse_counts("--threads", state.threads);
  if (!state.against.empty()) {
    if (is_artifact(state.model.path))
      throw_user_error("'{}' is an artifact, which {} cannot read: give the model, with the same --shape and --bind",
                       state.model.path, state.against);
    Peer::require(state.against, state.model.path);
  }
  Subject subject;
  subject.artifact = open_or_compile(state.model, common, subject.limits);
  std::vector<std::vector<std::string>> rows{{"threads", "best", "median"}};
  if (!state.against.empty()) rows[0].insert(rows[0].end(), {state.against + " best", "median", "ratio of medians"});
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
                          {"peer", version.empty() ? Value() : Value(state.against + " " + version)},
                          {"results", Value(results)}});
  } else {
    std::cout << to_table(rows);
    if (state.steps) print_steps(graph, counts, steps);
  }
  return HR_OK;
}

}  // namespace

Verb add_bench(CLI::App& app, const Common& common) {
  auto state = std::make_shared<BenchState>();
  CLI::App* verb = app.add_subcommand("bench", "Time a model, taking turns with another runtime");
  state->model.add_to(*verb, "A model (.onnx, .relay), or an artifact (.so)");
  verb->add_option("--threads", state->threads, "Numbers of threads to time, as 1,2")->capture_default_str();
  takes_word(verb->add_option("--against", state->against, "Another runtime on the same model and inputs"), "peer",
             {"onnxruntime"});
  takes(verb->add_option("--rounds", state->rounds, "Rounds; each runs ours once, then the peer once"), {1, 100000, 15})
      ->capture_default_str();
  verb->add_flag("--steps", state->steps, "Also the best time of each step, in rounds of their own");
  takes(verb->add_option("--seed", state->seed, "Of the random inputs"), {0, INT64_MAX, 1})->capture_default_str();
  verb->footer("Example: headrace bench model.onnx --shape x=1,3,224,224 --threads 1,2 --against onnxruntime");
  return [state, &common] { return bench(*state, common); };
}

}  // namespace headrace::tools
