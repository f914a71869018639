// headrace pipeline bench: the throughput of a stream beside that of one request at a time, and beside a prediction.
#include <chrono>
#include <deque>
#include <map>

#include "driver/simulate_pipeline.h"
#include "object/array.h"
#include "tools/headrace/interleaved_timing.h"
#include "tools/headrace/output.h"
#include "tools/headrace/pipeline_stream.h"
#include "tools/headrace/pipeline_verbs.h"
#include "tools/headrace/stream_files.h"
#include "tools/headrace/usage.h"

namespace headrace::tools {

namespace {

using executors::pipeline::Pipeline;
using executors::pipeline::PipelineMetrics;
using executors::pipeline::StageMetrics;

struct StreamBenchState {
  StreamOptions stream;
  int rounds = 5, requests = 100;
  bool simulates = false;
};

// Returns the seconds for the requests when `at_once` of them are under way.
double time_requests(Pipeline& pipeline, const std::vector<Value>& inputs, int requests, size_t at_once) {
  const auto begin = std::chrono::steady_clock::now();
  std::deque<executors::pipeline::Ticket> open;
  for (int i = 0; i < requests; ++i) {
    if (open.size() >= at_once) {
      open.front().results();
      open.pop_front();
    }
    open.push_back(pipeline.submit(inputs, {.keeps_inputs = true}));
  }
  for (; !open.empty(); open.pop_front()) open.front().results();
  return seconds_since(begin);
}

// How a simulated stream runs.
struct Prediction {
  std::vector<double> stage_seconds = {};  // in the order of the model
  plan::PipelineModel model = {};
  plan::Simulation simulation = {};
};

// Predicts the stream from the times that the stages took since `before` for requests that came one at a time.
Prediction predict(const Pipeline& alone, const PipelineMetrics& before, const Pipeline& stream, int requests) {
  std::map<std::string, double> seconds;
  const PipelineMetrics after = alone.metrics();
  for (size_t i = 0; i < after.stages.size(); ++i) {
    const StageMetrics &last = after.stages[i], &first = before.stages[i];
    const auto items = static_cast<double>(std::max<uint64_t>(last.items - first.items, 1));
    seconds[last.name] = static_cast<double>(last.busy_ns - first.busy_ns) * 1e-9 / items;
  }
  std::vector<int64_t> times;
  for (const executors::pipeline::StageSpec& stage : stream.spec().stages)
    times.push_back(static_cast<int64_t>(seconds[stage.name] * 1e9));
  Prediction made{.model =
                      driver::model_of_spec(stream.spec(), static_cast<int32_t>(stream.options().max_inflight), times)};
  made.simulation = plan::simulate(made.model, {.requests = requests, .warm_up = 0});
  for (const plan::SimulatedStage& stage : made.model.stages) made.stage_seconds.push_back(seconds[stage.name]);
  return made;
}

Value simulation_report(const Prediction& prediction, double achieved) {
  const plan::Simulation& simulation = prediction.simulation;
  Array<Value> stages;
  for (size_t i = 0; i < simulation.stages.size(); ++i) {
    const plan::StageLoad& load = simulation.stages[i];
    stages.push_back(Value(Report{{"name", Value(prediction.model.stages[i].name)},
                                  {"seconds", Value(prediction.stage_seconds[i])},
                                  {"busy", Value(load.busy)},
                                  {"starved", Value(load.starved)},
                                  {"blocked", Value(load.blocked)},
                                  {"waiting", Value(load.waiting)}}));
  }
  return Value(Report{{"requests_per_second", Value(simulation.requests_per_second)},
                      {"achieved_by_predicted", Value(achieved / simulation.requests_per_second)},
                      {"bottleneck", Value(simulation.bottleneck)},
                      {"stages", Value(stages)}});
}

int bench_stream(const StreamBenchState& state, const Common& common) {
  stream_files(state.stream, common).check();
  // A pipeline for each, so that the stages' times are those of the stream alone.
  const std::unique_ptr<Pipeline> pipeline = open_stream(state.stream), alone = open_stream(state.stream);
  const std::vector<Value> inputs = stream_inputs(*pipeline, state.stream);
  int lone_rounds = 0;
  PipelineMetrics warm;
  const std::vector<TimedRun> runs{
      [&] { return time_requests(*pipeline, inputs, state.requests, pipeline->options().max_inflight); },
      [&] {
        if (++lone_rounds == 2) warm = alone->metrics();  // the first round warms up
        return time_requests(*alone, inputs, state.requests, 1);
      }};
  start_trace(*pipeline, state.stream);
  const std::vector<Times> times = time_in_turns(runs, {.rounds = state.rounds});
  const std::optional<WrittenTrace> trace = write_trace(*pipeline, state.stream);
  const auto rate = [&](double seconds) { return static_cast<double>(state.requests) / seconds; };
  const double ratio = times[1].median() / times[0].median(), achieved = rate(times[0].median());
  std::optional<Prediction> predicted;
  if (state.simulates) predicted = predict(*alone, warm, *pipeline, state.requests);
  if (common.json) {
    const auto report = [&](const Times& one) {
      return Value(
          Report{{"best_per_second", Value(rate(one.best()))}, {"median_per_second", Value(rate(one.median()))}});
    };
    std::cout << to_json({{"file", Value(state.stream.path)},
                          {"rounds", Value(int64_t{state.rounds})},
                          {"requests", Value(int64_t{state.requests})},
                          {"stream", report(times[0])},
                          {"one_at_a_time", report(times[1])},
                          {"ratio", Value(ratio)},
                          {"simulation", predicted ? simulation_report(*predicted, achieved) : Value()},
                          {"metrics", Value(metrics_report(pipeline->metrics()))},
                          {"fallbacks", fallbacks_report(*pipeline)},
                          {"trace", trace_report(trace)}});
    return HR_OK;
  }
  std::vector<std::vector<std::string>> rows{{"requests a second", "best", "median"}};
  const std::pair<const char*, const Times&> named[] = {{"stream", times[0]}, {"one at a time", times[1]}};
  for (const auto& [name, one] : named)
    rows.push_back({name, fmt::format("{:.1f}", rate(one.best())), fmt::format("{:.1f}", rate(one.median()))});
  if (predicted) rows.push_back({"predicted", "", fmt::format("{:.1f}", predicted->simulation.requests_per_second)});
  print_out("{}ratio of medians {:.2f}\n", to_table(rows), ratio);
  if (predicted)
    print_out("achieved by predicted {:.2f}\n\n{}", achieved / predicted->simulation.requests_per_second,
              plan::format_simulation(predicted->model, predicted->simulation));
  print_out("{}{}", fallbacks_text(*pipeline), trace_text(trace));
  return HR_OK;
}

}  // namespace

Verb add_pipeline_bench(CLI::App& pipeline, const Common& common) {
  auto state = std::make_shared<StreamBenchState>();
  CLI::App* verb = pipeline.add_subcommand("bench", "Time a stream of requests, and the same requests one at a time");
  state->stream.add_to(*verb);
  takes(verb->add_option("--requests", state->requests, "Requests of a round"), {1, 100'000'000, 100})
      ->capture_default_str();
  takes(
      verb->add_option("--rounds", state->rounds, "Rounds; each runs the stream once, then the requests one at a time"),
      {1, 100000, 5})
      ->capture_default_str();
  verb->add_flag("--simulate", state->simulates,
                 "Predict the stream by a simulation, from the times of the stages for one request at a time");
  verb->footer(
      "One at a time, a request is submitted when the one before has its result. The simulation takes it that the "
      "stages of unlike groups do not slow each other down.\n"
      "Example: headrace pipeline bench pipe.so --requests 200");
  return [state, &common] { return bench_stream(*state, common); };
}

}  // namespace headrace::tools
