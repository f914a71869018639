// Simulated pipelines against closed forms, and random ones against a recurrence over requests.
#include "plan/pipeline/simulate.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "kit/errors.h"
#include "kit/golden.h"
#include "kit/options.h"
#include "kit/property.h"
#include "kit/split_networks.h"

namespace headrace::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Stages with groups of their own, in a row.
PipelineModel row_of(const std::vector<int64_t>& times, int32_t slots = 2) {
  PipelineModel model;
  for (size_t i = 0; i < times.size(); ++i) {
    const auto number = static_cast<int32_t>(i);
    model.groups.push_back({.name = fmt::format("core{}", i)});
    model.stages.push_back({.name = fmt::format("s{}", i), .group = number, .service_ns = {times[i]}});
    if (i > 0) model.edges.push_back({number - 1, number, slots});
  }
  return model;
}

TEST(Simulate, ARowRunsAtThePaceOfItsSlowestStage) {
  const Simulation run = simulate(row_of({30, 50, 20}));
  EXPECT_EQ(run.measured_ns, 1000 * 50);
  EXPECT_DOUBLE_EQ(run.requests_per_second, 1e9 / 50);
  EXPECT_EQ(run.bottleneck, "stage 's1'");
  EXPECT_DOUBLE_EQ(run.stages[0].busy, 0.6);
  EXPECT_DOUBLE_EQ(run.stages[0].blocked, 0.4);
  EXPECT_DOUBLE_EQ(run.stages[1].busy, 1);
  EXPECT_DOUBLE_EQ(run.stages[2].busy, 0.4);
  EXPECT_DOUBLE_EQ(run.stages[2].starved, 0.6);
}

// With one slot a stage starts only when its consumer has finished: two neighbours never work at once.
TEST(Simulate, OneSlotMakesNeighboursTakeTurns) {
  const Simulation run = simulate(row_of({30, 50, 20}, 1));
  EXPECT_EQ(run.measured_ns, 1000 * 80);
  EXPECT_EQ(run.bottleneck, "the edge 's0' -> 's1' with 1 slot");
}

TEST(Simulate, OneSlotOnASkipEdgeCutsTheThroughputToAThird) {
  PipelineModel model = row_of({10, 10, 10});
  model.edges.push_back({0, 2, 1});
  const Simulation run = simulate(model);
  EXPECT_EQ(run.measured_ns, 1000 * 30);
  EXPECT_EQ(run.bottleneck, "the edge 's0' -> 's2' with 1 slot");
  model.edges.back().slots = 3;
  EXPECT_EQ(simulate(model).measured_ns, 1000 * 10);
}

TEST(Simulate, StagesOfOneGroupTakeTurns) {
  PipelineModel model = row_of({30, 50, 20});
  model.stages[2].group = 1;
  const Simulation run = simulate(model);
  EXPECT_EQ(run.measured_ns, 1000 * 70);
  EXPECT_EQ(run.bottleneck, "group 'core1' with the stages 's1', 's2'");
  EXPECT_DOUBLE_EQ(run.stages[1].busy + run.stages[2].busy, 1);
  EXPECT_DOUBLE_EQ(run.stages[1].waiting, 20.0 / 70);
}

TEST(Simulate, ReplicasDivideTheTimeOfAStage) {
  PipelineModel model = row_of({20, 60, 20}, 4);
  model.groups[1].servers = model.stages[1].replicas = 3;
  EXPECT_EQ(simulate(model).measured_ns, 1000 * 20);
  model.groups[1].servers = model.stages[1].replicas = 2;
  EXPECT_EQ(simulate(model).measured_ns, 1000 * 30);
}

// Requests 0 and 1 start together; 1 is done at 10 but delivered at 100, after 0.
TEST(Simulate, ReplicasDeliverInOrder) {
  PipelineModel model = row_of({100, 5}, 4);
  model.stages[0].service_ns = {100, 10};
  model.groups[0].servers = model.stages[0].replicas = 2;
  EXPECT_THAT(simulate(model, {.arrivals_ns = {0, 0, 300}}).finished_ns, ElementsAre(105, 110, 405));
}

TEST(Simulate, TimesOfRequestsAreTakenInTurn) {
  PipelineModel model = row_of({1});
  model.stages[0].service_ns = {10, 30, 20};
  EXPECT_EQ(simulate(model, {.requests = 300, .warm_up = 3}).measured_ns, 300 * 20);
}

TEST(Simulate, SparseArrivalsPassWithoutWaiting) {
  const PipelineModel model = row_of({30, 50, 20});
  const Simulation run = simulate(model, {.arrivals_ns = {0, 100, 250, 400}});
  EXPECT_THAT(run.finished_ns, ElementsAre(100, 200, 350, 500));
  EXPECT_EQ(run.latency_p50_ns, 100);
  EXPECT_EQ(run.latency_max_ns, 100);
  EXPECT_EQ(run.bottleneck, "the arrivals");
}

// The k-th of n requests that come at once ends at 100 + 50 k; latencies are those times.
TEST(Simulate, ABurstWaitsForTheSlowestStage) {
  const Simulation run = simulate(row_of({30, 50, 20}), {.arrivals_ns = std::vector<int64_t>(200, 0)});
  EXPECT_EQ(run.latency_p50_ns, 100 + 50 * 99);
  EXPECT_EQ(run.latency_p90_ns, 100 + 50 * 179);
  EXPECT_EQ(run.latency_p99_ns, 100 + 50 * 197);
  EXPECT_EQ(run.latency_max_ns, 100 + 50 * 199);
}

// Little's law: two requests in flight, each 100 long.
TEST(Simulate, AnInflightLimitBoundsTheThroughput) {
  PipelineModel model = row_of({30, 50, 20});
  model.max_inflight = 1;
  EXPECT_EQ(simulate(model).measured_ns, 1000 * 100);
  model.max_inflight = 2;
  EXPECT_EQ(simulate(model).measured_ns, 1000 * 50);
  EXPECT_EQ(simulate(model).latency_p50_ns, 100);
}

PipelineModel random_model(kit::Random& random) {
  PipelineModel model;
  const auto stages = static_cast<int32_t>(random.integer(1, 6));
  for (int32_t i = 0; i < stages; ++i) {
    model.groups.push_back({.name = fmt::format("g{}", i)});
    model.stages.push_back({.name = fmt::format("s{}", i), .group = i});
    for (int64_t times = random.integer(1, 4); times > 0; --times)
      model.stages.back().service_ns.push_back(random.integer(0, 9));
  }
  for (int64_t edges = stages == 1 ? 0 : random.integer(0, 9); edges > 0; --edges) {
    const auto from = static_cast<int32_t>(random.integer(0, stages - 2));
    const auto to = static_cast<int32_t>(random.integer(from + 1, stages - 1));
    model.edges.push_back({from, to, static_cast<int32_t>(random.integer(1, 4))});
  }
  return model;
}

// Returns when each request ends in the slowest of its last stages. A stage starts when it has finished the request
// before, its inputs are there, and the slot of a request long ago has come back.
std::vector<int64_t> recurrence(const PipelineModel& model, const std::vector<int64_t>& arrivals) {
  std::vector<std::vector<int64_t>> finished(model.stages.size());
  std::vector<int64_t> ends;
  for (size_t request = 0; request < arrivals.size(); ++request) {
    int64_t end = ends.empty() ? 0 : ends.back();
    for (size_t stage = 0; stage < model.stages.size(); ++stage) {
      int64_t start = std::max(arrivals[request], request == 0 ? 0 : finished[stage].back());
      for (const SimulatedEdge& edge : model.edges) {
        const auto from = static_cast<size_t>(edge.producer), to = static_cast<size_t>(edge.consumer);
        if (to == stage) start = std::max(start, finished[from].back());
        if (from == stage && request >= static_cast<size_t>(edge.slots))
          start = std::max(start, finished[to][request - static_cast<size_t>(edge.slots)]);
      }
      const auto& times = model.stages[stage].service_ns;
      finished[stage].push_back(start + times[request % times.size()]);
      end = std::max(end, finished[stage].back());
    }
    ends.push_back(end);
  }
  return ends;
}

TEST(Simulate, EqualsTheRecurrence) {
  kit::Property<PipelineModel> property;
  property.runs_ci = 300;
  property.runs_full = 5000;
  property.generate = random_model;
  property.show = [](const PipelineModel& model) {
    std::string text;
    for (const SimulatedStage& stage : model.stages) text += fmt::format("{} ", stage.service_ns);
    for (const SimulatedEdge& edge : model.edges)
      text += fmt::format("; {} -> {} slots {}", edge.producer, edge.consumer, edge.slots);
    return text;
  };
  property.check = [](const PipelineModel& model) -> std::optional<std::string> {
    kit::Random random(model.edges.size());
    std::vector<int64_t> arrivals(60);
    for (size_t i = 1; i < arrivals.size(); ++i) arrivals[i] = arrivals[i - 1] + random.integer(0, 12);
    const Simulation run = simulate(model, {.arrivals_ns = arrivals});
    const std::vector<int64_t> expected = recurrence(model, arrivals);
    if (run.finished_ns != expected) return fmt::format("{} is not {}", run.finished_ns, expected);
    for (const StageLoad& load : run.stages) {
      if (std::abs(load.busy + load.starved + load.blocked + load.waiting - 1) > 1e-9) return "shares do not add up";
    }
    return {};
  };
  EXPECT_TRUE(kit::holds(property));
}

// The planner and the simulator agree: a plan runs at its period.
TEST(Simulate, PlansRunAtTheirPeriod) {
  const bool is_small = kit::options().size == kit::TestSize::kFew;
  for (const bool overlaps : {false, true}) {
    for (const auto& problem : {kit::inception({.gpus = 3, .overlaps = overlaps}, true),
                                kit::bert24({.gpus = 5, .overlaps = overlaps}, false),
                                kit::resnet50_training({.gpus = is_small ? 2 : 4, .overlaps = overlaps})}) {
      const SplitPlan plan = split_pipeline(problem, {.restarts = 0});
      EXPECT_EQ(simulate(model_of_plan(problem, plan)).measured_ns, 1000 * plan.period_ns);
    }
  }
}

TEST(Simulate, AReplicatedPlanRunsAtItsPeriod) {
  SplitProblem problem = kit::bert24({.gpus = 3}, false);
  problem.nodes[5].time_ns[0] *= 100;
  problem.max_replicas = 2;
  const SplitPlan plan = split_pipeline(problem);
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_LE(simulate(model_of_plan(problem, plan)).measured_ns, 1000 * plan.period_ns);
  EXPECT_GE(simulate(model_of_plan(problem, plan)).measured_ns, 1000 * (plan.period_ns - 1));
}

TEST(Simulate, Text) {
  PipelineModel model = row_of({300'000, 1'250'000, 20});
  model.groups[1].servers = model.stages[1].replicas = 2;
  model.edges.push_back({0, 2, 4});
  EXPECT_TRUE(kit::matches_golden(HEADRACE_SOURCE_DIR "/src/plan/pipeline/tests/row.simulation.txt",
                                  format_simulation(model, simulate(model))));
}

template <typename Change>
std::string refused_model(const Change& change, const SimulationOptions& options = {}) {
  PipelineModel model = row_of({1, 2});
  change(model);
  return kit::user_error_of([&] { simulate(model, options); });
}

TEST(Simulate, RefusesNumbersOutOfRange) {
  using Model = PipelineModel;
  const std::vector<std::pair<std::string, std::function<void(Model&)>>> cases{
      {"there is no stage", [](Model& m) { m.stages.clear(); }},
      {"it has 0 servers", [](Model& m) { m.groups[1].servers = 0; }},
      {"its group is 2, there are 2 groups", [](Model& m) { m.stages[1].group = 2; }},
      {"it has 0 replicas", [](Model& m) { m.stages[1].replicas = 0; }},
      {"it has no service time", [](Model& m) { m.stages[1].service_ns.clear(); }},
      {"a service time is -1 ns", [](Model& m) { m.stages[1].service_ns = {-1}; }},
      {"it leads from stage 1 to stage 1 of 2", [](Model& m) { m.edges[0].producer = 1; }},
      {"it has 0 slots", [](Model& m) { m.edges[0].slots = 0; }},
      {"max_inflight is -1", [](Model& m) { m.max_inflight = -1; }}};
  for (const auto& [message, change] : cases) EXPECT_THAT(refused_model(change), HasSubstr(message));
  EXPECT_THAT(refused_model([](Model&) {}, {.requests = 0}), HasSubstr("0 requests after 200"));
  EXPECT_THAT(refused_model([](Model&) {}, {.arrivals_ns = {2, 1}}), HasSubstr("not in ascending order"));
}

}  // namespace
}  // namespace headrace::plan
