// Stages that units cannot have, against all plans of small random graphs.
#include "plan/pipeline/narrow_ranges.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <set>

#include "kit/property.h"
#include "plan/pipeline/contract.h"

namespace headrace::plan {
namespace {

using Stages = std::vector<int8_t>;

// Returns a row of units over equal devices; each tensor takes `transfer_ns`.
SplitProblem row_problem(const std::vector<int64_t>& times, int32_t devices, int64_t transfer_ns = 0,
                         bool overlaps = false) {
  SplitProblem problem{.kinds = {"cpu"}};
  for (const int64_t time : times) {
    const auto made = static_cast<int32_t>(problem.nodes.size());
    problem.nodes.push_back({.name = fmt::format("n{}", made), .time_ns = {time}});
    if (made > 0) problem.tensors.push_back({.producer = made - 1, .consumers = {made}, .size_bytes = transfer_ns});
  }
  const std::vector<SplitLink> links(as_index(devices), {1'000'000'000, 0});
  for (int32_t i = 0; i < devices; ++i)
    problem.devices.push_back({.name = fmt::format("d{}", i), .overlaps = overlaps, .links = links});
  return problem;
}

struct Narrowed {
  bool has_plans = false;
  StageRanges ranges;
  int64_t steps = 0;
};

Narrowed narrowed(const SplitGraph& graph, int64_t period_ns, StageRanges ranges) {
  Narrowed made{.ranges = std::move(ranges)};
  RangeNarrower narrower(graph);
  made.has_plans = narrower.narrow(period_ns, made.ranges);
  made.steps = narrower.steps();
  return made;
}

TEST(NarrowRanges, ARowIsCutWhereStagesAreFull) {
  const SplitGraph graph = contract_problem(row_problem({10, 10, 10, 10}, 2)).graph;
  const Narrowed tight = narrowed(graph, 21, StageRanges(graph, 2));
  EXPECT_TRUE(tight.has_plans);
  EXPECT_EQ(tight.ranges.first, (Stages{0, 0, 1, 1}));
  EXPECT_EQ(tight.ranges.last, (Stages{0, 0, 1, 1}));
  EXPECT_GT(tight.steps, 0);
  const Narrowed loose = narrowed(graph, 31, StageRanges(graph, 2));
  EXPECT_EQ(loose.ranges.first, (Stages{0, 0, 0, 1}));
  EXPECT_EQ(loose.ranges.last, (Stages{0, 1, 1, 1}));
  EXPECT_FALSE(narrowed(graph, 20, StageRanges(graph, 2)).has_plans);
}

TEST(NarrowRanges, StagesBetweenOthersAreFullToo) {
  const SplitGraph graph = contract_problem(row_problem({10, 10, 10, 10}, 3)).graph;
  StageRanges ranges(graph, 3);
  ranges.first = {0, 1, 1, 1};
  ranges.last = {0, 1, 2, 2};
  const Narrowed made = narrowed(graph, 20, ranges);  // one unit a stage, so that four need four
  EXPECT_FALSE(made.has_plans);
  const Narrowed wider = narrowed(graph, 21, ranges);
  EXPECT_TRUE(wider.has_plans);
  EXPECT_EQ(wider.ranges.first, (Stages{0, 1, 1, 2}));
  EXPECT_EQ(wider.ranges.last, (Stages{0, 1, 2, 2}));
}

TEST(NarrowRanges, BarredStagesAtAnEndAreTakenAway) {
  const SplitGraph graph = contract_problem(row_problem({1, 1, 1}, 4)).graph;
  StageRanges ranges(graph, 4);
  ranges.last[0] = 0;
  ranges.first[1] = 1;
  ranges.barred[1] = 1 << 1 | 1 << 3;
  const Narrowed made = narrowed(graph, 100, ranges);
  EXPECT_TRUE(made.has_plans);
  EXPECT_EQ(made.ranges.first, (Stages{0, 2, 2}));
  EXPECT_EQ(made.ranges.last, (Stages{0, 2, 3}));
  ranges.barred[1] = 1 << 1 | 1 << 2 | 1 << 3;
  EXPECT_FALSE(narrowed(graph, 100, ranges).has_plans);
}

TEST(NarrowRanges, TheOnlyReaderLiesInItsStage) {
  SplitProblem problem = row_problem({1, 1, 1}, 4);
  problem.tensors = {{.producer = 0, .consumers = {1, 2}, .size_bytes = 1}};
  const SplitGraph graph = contract_problem(problem).graph;
  StageRanges ranges(graph, 4);
  ranges.read_in[0] = 1 << 2;
  Narrowed made = narrowed(graph, 100, ranges);
  EXPECT_EQ(made.ranges.first, (Stages{0, 0, 0}));
  EXPECT_EQ(made.ranges.last, (Stages{2, 3, 3}));
  ranges.last[1] = 1;
  made = narrowed(graph, 100, ranges);
  EXPECT_EQ(made.ranges.first, (Stages{0, 0, 2}));
  EXPECT_EQ(made.ranges.last, (Stages{1, 1, 2}));
  ranges.barred[2] = 1 << 2;
  EXPECT_FALSE(narrowed(graph, 100, ranges).has_plans);
}

// The first unit of 10 ns is in stage 0; the second one, of 60 ns, reads its tensor of 100 ns.
TEST(NarrowRanges, UnitsStayWhereTransfersHaveNoRoom) {
  for (const bool overlaps : {false, true}) {
    const SplitGraph graph = contract_problem(row_problem({10, 60}, 2, 100, overlaps)).graph;
    StageRanges ranges(graph, 2);
    ranges.last[0] = 0;
    const auto last_stage = [&](int64_t period_ns) { return narrowed(graph, period_ns, ranges).ranges.last[1]; };
    EXPECT_EQ(last_stage(overlaps ? 101 : 161), 1);
    EXPECT_EQ(last_stage(overlaps ? 100 : 160), 0);  // no room in stage 1
  }
  const SplitGraph graph = contract_problem(row_problem({60, 10}, 2, 100)).graph;
  StageRanges ranges(graph, 2);
  ranges.last[0] = 0;
  EXPECT_EQ(narrowed(graph, 161, ranges).ranges.last[1], 1);
  EXPECT_EQ(narrowed(graph, 160, ranges).ranges.last[1], 0);  // no room in stage 0
  ranges.first[1] = 1;
  EXPECT_TRUE(narrowed(graph, 161, ranges).has_plans);
  EXPECT_FALSE(narrowed(graph, 160, ranges).has_plans);
}

// The unit in the middle fits into all stages but the one that has a unit of 50 ns.
TEST(NarrowRanges, FullStagesBetweenOthersAreBarred) {
  SplitProblem problem = row_problem({10, 20, 50}, 3);
  problem.tensors = {{.producer = 0, .consumers = {1, 2}}};
  const SplitGraph graph = contract_problem(problem).graph;
  StageRanges ranges(graph, 3);
  ranges.first[2] = ranges.last[2] = 1;
  const Narrowed made = narrowed(graph, 65, ranges);
  EXPECT_TRUE(made.ranges.may_have(1, 0));
  EXPECT_FALSE(made.ranges.may_have(1, 1));
  EXPECT_TRUE(made.ranges.may_have(1, 2));
}

struct NarrowCase {
  SplitGraph graph;
  StageRanges ranges;
  int64_t period_ns = 1;
  bool overlaps = false;

  int32_t stages() const { return graph.devices.num_devices; }
};

NarrowCase random_narrow_case(kit::Random& random) {
  const auto nodes = static_cast<int32_t>(random.integer(2, 6));
  const auto stages = static_cast<int32_t>(random.integer(2, 4));
  NarrowCase one{.graph = {}, .ranges = {}, .period_ns = random.integer(1, 60), .overlaps = random.chance(0.5F)};
  SplitProblem problem = row_problem({}, stages, 0, one.overlaps);
  for (int32_t i = 0; i < nodes; ++i)
    problem.nodes.push_back({.name = fmt::format("n{}", i), .time_ns = {random.integer(0, 20)}});
  for (int32_t i = 0; i + 1 < nodes; ++i) {
    if (random.chance(0.2F)) continue;
    SplitTensor tensor{.producer = i, .size_bytes = random.integer(0, 20)};
    for (int64_t count = random.integer(1, 2); count > 0; --count)
      tensor.consumers.push_back(static_cast<int32_t>(random.integer(i + 1, nodes - 1)));
    problem.tensors.push_back(tensor);
  }
  one.graph = contract_problem(problem).graph;
  one.ranges = StageRanges(one.graph, stages);
  for (uint8_t& barred : one.ranges.barred) {
    if (random.chance(0.2F)) barred = static_cast<uint8_t>(1 << random.integer(0, stages - 1));
  }
  for (uint8_t& read_in : one.ranges.read_in) {
    if (random.chance(0.2F)) read_in = static_cast<uint8_t>(1 << random.integer(0, stages - 1));
  }
  return one;
}

// Returns the times of the stages by the definition: 1 byte takes 1 ns at either end, for each stage that reads it.
std::array<int64_t, kMaxCutStages> defined_times(const NarrowCase& one, const std::vector<int32_t>& stage_of) {
  std::array<int64_t, kMaxCutStages> compute{}, transfers{};
  for (int32_t unit = 0; unit < one.graph.num_units; ++unit)
    compute[as_index(stage_of[as_index(unit)])] += one.graph.compute(unit, 0);
  for (size_t tensor = 0; tensor < one.graph.tensor_bytes.size(); ++tensor) {
    const int32_t from = stage_of[as_index(one.graph.tensor_producer[tensor])];
    std::set<int32_t> readers;
    for (const int32_t consumer : one.graph.tensor_consumers[tensor]) readers.insert(stage_of[as_index(consumer)]);
    readers.erase(from);
    for (const int32_t to : readers) {
      transfers[as_index(from)] += one.graph.tensor_bytes[tensor];
      transfers[as_index(to)] += one.graph.tensor_bytes[tensor];
    }
  }
  for (size_t stage = 0; stage < compute.size(); ++stage)
    compute[stage] = one.overlaps ? std::max(compute[stage], transfers[stage]) : compute[stage] + transfers[stage];
  return compute;
}

bool is_short_plan(const NarrowCase& one, const std::vector<int32_t>& stage_of) {
  for (int32_t unit = 0; unit < one.graph.num_units; ++unit) {
    if (!one.ranges.may_have(unit, stage_of[as_index(unit)])) return false;
  }
  for (size_t tensor = 0; tensor < one.graph.tensor_bytes.size(); ++tensor) {
    int32_t readers = 0;
    for (const int32_t consumer : one.graph.tensor_consumers[tensor]) {
      readers |= 1 << stage_of[as_index(consumer)];
      if (stage_of[as_index(one.graph.tensor_producer[tensor])] > stage_of[as_index(consumer)]) return false;
    }
    if ((one.ranges.read_in[tensor] & ~readers) != 0) return false;
  }
  const auto times = defined_times(one, stage_of);
  return *std::max_element(times.begin(), times.end()) < one.period_ns;
}

// Each plan that is short enough lies in the narrowed ranges.
std::optional<std::string> check_narrow(const NarrowCase& one) {
  const Narrowed made = narrowed(one.graph, one.period_ns, one.ranges);
  int64_t plans = 1;
  for (int32_t unit = 0; unit < one.graph.num_units; ++unit) plans *= one.stages();
  for (int64_t plan = 0; plan < plans; ++plan) {
    std::vector<int32_t> stage_of;
    int64_t rest = plan;
    for (int32_t unit = 0; unit < one.graph.num_units; ++unit, rest /= one.stages())
      stage_of.push_back(static_cast<int32_t>(rest % one.stages()));
    if (!is_short_plan(one, stage_of)) continue;
    if (!made.has_plans) return fmt::format("the plan {} was refuted", stage_of);
    for (int32_t unit = 0; unit < one.graph.num_units; ++unit) {
      if (!made.ranges.may_have(unit, stage_of[as_index(unit)])) return fmt::format("the plan {} is gone", stage_of);
    }
  }
  return {};
}

TEST(NarrowRanges, KeepAllShortPlans) {
  kit::Property<NarrowCase> property;
  property.seed = 7;
  property.runs_ci = 3000;
  property.runs_full = 100'000;
  property.generate = random_narrow_case;
  property.show = [](const NarrowCase& one) {
    return fmt::format("{} stages, {} units, {} ns", one.stages(), one.graph.num_units, one.period_ns);
  };
  property.check = check_narrow;
  EXPECT_TRUE(kit::holds(property));
}

}  // namespace
}  // namespace headrace::plan
