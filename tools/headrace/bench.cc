// headrace bench: seconds a run, in rounds that take turns with another runtime.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <thread>

#include "headrace/output.h"
#include "headrace/peer.h"
#include "headrace/session.h"
#include "headrace/tensors.h"

namespace headrace::tools {

namespace {

struct State {
  ModelOptions model;
  std::string threads = "1";
  std::string against;
  int rounds = 15;
  uint64_t seed = 1;
};

struct Times {
  std::vector<double> seconds;
  void add(double one) { seconds.insert(std::upper_bound(seconds.begin(), seconds.end(), one), one); }
  double best() const { return seconds.front(); }
  double median() const { return seconds[seconds.size() / 2]; }
};

double time_run(executors::GraphRunner& runner) {
  const auto begin = std::chrono::steady_clock::now();
  const executors::RunStatus status = runner.run();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (status.code != 0) throw UserError(std::string(status.message), {.op = std::string(status.op), .place = ""});
  return seconds.count();
}

struct Measured {
  Times ours, peer;
};

Measured measure(const State& state, const std::shared_ptr<const load::Artifact>& artifact, int threads,
                 std::string& peer_version) {
  const auto executor = make_executor(artifact, artifact::kDefaultProgram, threads);
  executors::GraphRunner& runner = executor->runner();
  std::vector<NDArray> inputs;
  std::vector<std::string> names;
  for (const artifact::TensorSpec& spec : runner.program().inputs) {
    names.push_back(spec.name);
    inputs.push_back(random_tensor(spec, state.seed));
    runner.set_input(inputs.size() - 1, inputs.back().tensor());
  }
  std::unique_ptr<Peer> peer;
  if (!state.against.empty()) {
    peer = std::make_unique<Peer>(state.against, state.model.path, names, inputs, threads);
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
  return measured;
}

int bench(const State& state, const Common& common) {
  const std::vector<int> counts = parse_counts("--threads", state.threads);
  if (!state.against.empty()) {
    if (is_artifact(state.model.path))
      throw_user_error("'{}' is an artifact, which {} cannot read: give the model, with the same --shape and --bind",
                       state.model.path, state.against);
    Peer::require(state.against);
  }
  const auto artifact = open_or_compile(state.model, common);
  std::vector<std::vector<std::string>> rows{{"threads", "best", "median"}};
  if (!state.against.empty()) rows[0].insert(rows[0].end(), {state.against + " best", "median", "ratio of medians"});
  Array<Value> results;
  std::string version;
  for (const int threads : counts) {
    const Measured measured = measure(state, artifact, threads, version);
    Report one{{"threads", Value(int64_t{threads})},
               {"best_seconds", Value(measured.ours.best())},
               {"median_seconds", Value(measured.ours.median())}};
    rows.push_back({std::to_string(threads), show_seconds(measured.ours.best()), show_seconds(measured.ours.median())});
    if (!state.against.empty()) {
      const double ratio = measured.ours.median() / measured.peer.median();
      one.set("peer_best_seconds", Value(measured.peer.best()));
      one.set("peer_median_seconds", Value(measured.peer.median()));
      one.set("ratio", Value(ratio));
      rows.back().insert(rows.back().end(), {show_seconds(measured.peer.best()), show_seconds(measured.peer.median()),
                                             fmt::format("{:.2f}", ratio)});
    }
    results.push_back(Value(one));
  }
  if (common.json) {
    std::cout << to_json({{"model", Value(state.model.path)},
                          {"rounds", Value(int64_t{state.rounds})},
                          {"peer", version.empty() ? Value() : Value(state.against + " " + version)},
                          {"results", Value(results)}});
  } else {
    std::cout << to_table(rows);
  }
  return kOk;
}

}  // namespace

Verb add_bench(CLI::App& app, const Common& common) {
  auto state = std::make_shared<State>();
  CLI::App* verb = app.add_subcommand("bench", "Time a model, taking turns with another runtime");
  state->model.add_to(*verb, "A model (.onnx, .relay), or an artifact (.so)");
  verb->add_option("--threads", state->threads, "Numbers of threads to time, as 1,2")->capture_default_str();
  verb->add_option("--against", state->against, "Another runtime on the same model and inputs")
      ->type_name("PEER")
      ->check(CLI::IsMember({"onnxruntime"}));
  verb->add_option("--rounds", state->rounds, "Rounds; each runs ours once, then the peer once")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  verb->add_option("--seed", state->seed, "Of the random inputs")->capture_default_str();
  verb->footer("Example: headrace bench model.onnx --shape x=1,3,224,224 --threads 1,2 --against onnxruntime");
  return [state, &common] { return bench(*state, common); };
}

}  // namespace headrace::tools
