#include "bench/stream_simulated.h"

#include <thread>

#include "bench/stream_bounds.h"
#include "driver/simulate_pipeline.h"

namespace headrace::bench {

namespace {

using pipe::Source;

// A stage that sleeps; its sources are the pipeline's input (-1) and other stages.
struct Sleeper {
  double seconds = 0;
  std::vector<int> sources = {};
  int replicas = 1;
  size_t group = 0;
};

struct SimulatedCase {
  std::string name;
  std::vector<Sleeper> stages;
};

class SleepStage final : public pipe::StageCode {
 public:
  SleepStage(size_t num_inputs, double seconds) : inputs_(num_inputs, any_value()), time_(seconds) {
    for (size_t i = 0; i < num_inputs; ++i) inputs_[i].spec.name = fmt::format("x{}", i);
    outputs_[0].spec.name = "y";
  }
  const std::vector<pipe::Port>& inputs() const override { return inputs_; }
  const std::vector<pipe::Port>& outputs() const override { return outputs_; }
  Ref<ErrorObj> run(std::span<const Value* const>, std::span<Value>) noexcept override {
    std::this_thread::sleep_for(time_);
    return {};
  }

 private:
  std::vector<pipe::Port> inputs_, outputs_{any_value()};
  std::chrono::duration<double> time_;
};

// Makes a chain: each stage in a group of its own.
std::vector<Sleeper> chain(const std::vector<double>& seconds) {
  std::vector<Sleeper> stages;
  for (size_t i = 0; i < seconds.size(); ++i)
    stages.push_back({.seconds = seconds[i], .sources = {static_cast<int>(i) - 1}, .group = i});
  return stages;
}

std::vector<Sleeper> with_edges(std::vector<Sleeper> stages, const std::vector<std::pair<int, size_t>>& edges) {
  for (const auto& [from, to] : edges) stages[to].sources.push_back(from);
  return stages;
}

std::vector<Sleeper> with_replicas(std::vector<Sleeper> stages, size_t stage, int replicas) {
  stages[stage].replicas = replicas;
  return stages;
}

// Makes stages 0, two branches, and a last one that joins them.
std::vector<Sleeper> diamond(double upper, double lower, double rest) {
  std::vector<Sleeper> stages = chain({rest, upper, lower, rest});
  stages[2].sources = {0};
  stages[3].sources = {1, 2};
  return stages;
}

std::vector<Sleeper> in_groups(std::vector<Sleeper> stages, const std::vector<size_t>& groups) {
  for (size_t i = 0; i < stages.size(); ++i) stages[i].group = groups[i];
  return stages;
}

std::vector<SimulatedCase> simulated_cases(double s) {
  return {{"one stage", chain({s})},
          {"2 equal stages", chain({s, s})},
          {"8 equal stages", chain(std::vector<double>(8, s))},
          {"4 stages, the first one is slow", chain({s, s / 4, s / 2, s / 4})},
          {"4 stages, the last one is slow", chain({s / 4, s / 2, s / 4, s})},
          {"6 stages, one edge skips 5", with_edges(chain(std::vector<double>(6, s)), {{0, 5}})},
          {"8 stages, three edges skip some", with_edges(chain(std::vector<double>(8, s)), {{0, 3}, {2, 6}, {1, 7}})},
          {"two equal branches that join", diamond(s, s, s / 2)},
          {"two unequal branches that join", diamond(s, s / 4, s / 2)},
          {"a slow stage with 2 replicas", with_replicas(chain({s / 2, s, s / 2}), 1, 2)},
          {"a slow stage with 3 replicas", with_replicas(chain({s / 2, s, s / 4}), 1, 3)},
          {"4 stages in 2 threads", in_groups(chain({s, s / 2, s, s / 2}), {0, 0, 1, 1})}};
}

pipe::PipelineSpec spec_of(const SimulatedCase& one) {
  pipe::PipelineSpec spec{.inputs = {any_value()}};
  for (const Sleeper& sleeper : one.stages) {
    pipe::StageSpec stage{.name = fmt::format("s{}", spec.stages.size()), .group = sleeper.group};
    for (const int source : sleeper.sources)
      stage.inputs.push_back(source < 0 ? Source{.kind = Source::Kind::input}
                                        : Source{.kind = Source::Kind::stage, .index = static_cast<size_t>(source)});
    for (int i = 0; i < sleeper.replicas; ++i)
      stage.replicas.push_back(std::make_shared<SleepStage>(sleeper.sources.size(), sleeper.seconds));
    spec.groups.resize(std::max(spec.groups.size(), sleeper.group + 1));
    spec.stages.push_back(std::move(stage));
  }
  spec.outputs = {{.name = "y", .source = {.kind = Source::Kind::stage, .index = one.stages.size() - 1}}};
  return spec;
}

// Returns the nanoseconds that a sleep takes, which is longer than it is told to be.
int64_t measure_sleep(double seconds, int count) {
  const pipe::Clock::time_point begin = pipe::Clock::now();
  for (int i = 0; i < count; ++i) std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  return static_cast<int64_t>(seconds_since(begin) * 1e9 / count);
}

constexpr int32_t kPlaces = 64;  // as in time_stream

// Returns requests per second as the simulator predicts them.
double predict(const SimulatedCase& one, int items) {
  std::vector<int64_t> times;
  for (const Sleeper& stage : one.stages) times.push_back(measure_sleep(stage.seconds, 10));
  const plan::PipelineModel model = driver::model_of_spec(spec_of(one), kPlaces, times);
  return plan::simulate(model, {.requests = items, .warm_up = 0}).requests_per_second;
}

}  // namespace

tools::Report measure_predictions(const StreamBenchOptions& options) {
  constexpr double kLimit = 0.05;
  const int items = std::clamp(options.items / 100, 20, 200);
  const std::vector<SimulatedCase> cases = simulated_cases(options.sleep_seconds);
  std::vector<Shares> predicted(cases.size()), achieved(cases.size()), ratios(cases.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < cases.size(); ++i) {
      predicted[i].add(predict(cases[i], items));
      const double rate = items / time_stream(spec_of(cases[i]), Value(int64_t{1}), items);
      achieved[i].add(rate);
    }
  }
  Array<Value> rows;
  for (size_t i = 0; i < cases.size(); ++i) {
    for (const double rate : achieved[i].sorted()) ratios[i].add(rate / predicted[i].median());
    const bool holds = ratios[i].high() >= 1 - kLimit && ratios[i].low() <= 1 + kLimit;
    rows.push_back(Value(tools::Report{{"name", Value(cases[i].name)},
                                       {"predicted_per_second", Value(predicted[i].median())},
                                       {"achieved_per_second", Value(achieved[i].median())},
                                       {"ratio", Value(ratios[i].median())},
                                       {"ratio_low", Value(ratios[i].low())},
                                       {"ratio_high", Value(ratios[i].high())},
                                       {"limit", Value(kLimit)},
                                       {"holds", Value(holds)}}));
  }
  return {{"pipelines", Value(rows)}};
}

}  // namespace headrace::bench
