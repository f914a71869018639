// headrace pipeline bench: the throughput of a stream beside that of one request at a time.
#include <chrono>
#include <deque>

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

struct StreamBenchState {
  StreamOptions stream;
  int rounds = 5, requests = 100;
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

int bench_stream(const StreamBenchState& state, const Common& common) {
  stream_files(state.stream, common).check();
  // A pipeline for each, so that the stages' times are those of the stream alone.
  const std::unique_ptr<Pipeline> pipeline = open_stream(state.stream), alone = open_stream(state.stream);
  const std::vector<Value> inputs = stream_inputs(*pipeline, state.stream);
  const std::vector<TimedRun> runs{
      [&] { return time_requests(*pipeline, inputs, state.requests, pipeline->options().max_inflight); },
      [&] { return time_requests(*alone, inputs, state.requests, 1); }};
  start_trace(*pipeline, state.stream);
  const std::vector<Times> times = time_in_turns(runs, {.rounds = state.rounds});
  const std::optional<WrittenTrace> trace = write_trace(*pipeline, state.stream);
  const auto rate = [&](double seconds) { return static_cast<double>(state.requests) / seconds; };
  const double ratio = times[1].median() / times[0].median();
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
                          {"metrics", Value(metrics_report(pipeline->metrics()))},
                          {"fallbacks", fallbacks_report(*pipeline)},
                          {"trace", trace_report(trace)}});
    return HR_OK;
  }
  std::vector<std::vector<std::string>> rows{{"requests a second", "best", "median"}};
  const std::pair<const char*, const Times&> named[] = {{"stream", times[0]}, {"one at a time", times[1]}};
  for (const auto& [name, one] : named)
    rows.push_back({name, fmt::format("{:.1f}", rate(one.best())), fmt::format("{:.1f}", rate(one.median()))});
  print_out("{}ratio of medians {:.2f}\n{}{}", to_table(rows), ratio, fallbacks_text(*pipeline), trace_text(trace));
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
  verb->footer(
      "One at a time, a request is submitted when the one before has its result.\n"
      "Example: headrace pipeline bench pipe.so --requests 200");
  return [state, &common] { return bench_stream(*state, common); };
}

}  // namespace headrace::tools
