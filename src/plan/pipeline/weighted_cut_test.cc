// Minimum cuts over ranges of stages, against all plans of small random graphs.
#include "plan/pipeline/weighted_cut.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "kit/property.h"
#include "plan/pipeline/contract.h"

namespace headrace::plan {
namespace {

struct CutCase {
  SplitGraph graph;
  StageRanges ranges;
  StageWeights weights;
  int32_t stages = 2;
};

SplitGraph random_graph(kit::Random& random, int32_t stages) {
  SplitProblem problem{.kinds = {"cpu"}};
  const auto nodes = static_cast<int32_t>(random.integer(2, 6));
  for (int32_t i = 0; i < nodes; ++i)
    problem.nodes.push_back({.name = fmt::format("n{}", i), .time_ns = {random.integer(0, 20)}});
  for (int32_t i = 0; i + 1 < nodes; ++i) {
    SplitTensor tensor{.producer = i, .size_bytes = random.integer(0, 20)};
    for (int64_t count = random.integer(1, 3); count > 0; --count)
      tensor.consumers.push_back(static_cast<int32_t>(random.integer(i + 1, nodes - 1)));
    problem.tensors.push_back(tensor);
  }
  const std::vector<SplitLink> links(as_index(stages), {1'000'000'000, 1});
  for (int32_t i = 0; i < stages; ++i) problem.devices.push_back({.name = fmt::format("d{}", i), .links = links});
  return contract_problem(problem).graph;
}

void bar_stages(kit::Random& random, StageRanges& ranges) {
  for (size_t unit = 0; unit < ranges.first.size(); ++unit) {
    for (int32_t stage = ranges.first[unit] + 1; stage < ranges.last[unit]; ++stage) {
      if (random.chance(0.2F)) ranges.barred[unit] |= static_cast<uint8_t>(1 << stage);
    }
  }
}

void demand_readers(kit::Random& random, CutCase& one) {
  for (size_t tensor = 0; tensor < one.graph.tensor_bytes.size(); ++tensor) {
    if (!random.chance(0.2F)) continue;
    const auto consumers = one.graph.tensor_consumers[tensor];
    const int32_t reader = consumers[random.index(consumers.size())];
    one.ranges.read_in[tensor] = static_cast<uint8_t>(1 << one.ranges.last[as_index(reader)]);
  }
}

bool has_demands(const CutCase& one) {
  return std::any_of(one.ranges.read_in.begin(), one.ranges.read_in.end(), [](uint8_t stages) { return stages != 0; });
}

// Ranges are those around a random plan, made as wide as edges allow; some stages between are barred. Some tensors must
// be read in a stage that a consumer may have.
CutCase random_cut_case(kit::Random& random) {
  CutCase one;
  one.stages = static_cast<int32_t>(random.integer(2, 4));
  one.graph = random_graph(random, one.stages);
  one.ranges = StageRanges(one.graph, one.stages);
  for (int32_t unit = 0; unit < one.graph.num_units; ++unit) {
    int8_t first = 0;
    for (const int32_t tensor : one.graph.inputs[as_index(unit)])
      first = std::max(first, one.ranges.first[as_index(one.graph.tensor_producer[as_index(tensor)])]);
    if (random.chance(0.3F)) first = static_cast<int8_t>(random.integer(first, one.stages - 1));
    one.ranges.first[as_index(unit)] = first;
    one.ranges.last[as_index(unit)] = static_cast<int8_t>(random.integer(first, one.stages - 1));
  }
  for (int32_t unit = one.graph.num_units; unit-- > 0;) {
    int8_t& last = one.ranges.last[as_index(unit)];
    for (const int32_t tensor : one.graph.outputs[as_index(unit)]) {
      for (const int32_t consumer : one.graph.tensor_consumers[as_index(tensor)])
        last = std::max(one.ranges.first[as_index(unit)], std::min(last, one.ranges.last[as_index(consumer)]));
    }
  }
  bar_stages(random, one.ranges);
  demand_readers(random, one);
  for (int32_t stage = 0; stage < one.stages; ++stage) {
    one.weights.compute[as_index(stage)] = random.integer(0, 9);
    one.weights.transfers[as_index(stage)] = random.integer(0, 9);
  }
  return one;
}

// Returns the weighted sum of a plan by the definition: each tensor takes time at both ends for each stage that reads
// it. 1 byte takes 1 ns, and each transfer 1 ns more.
int64_t defined_sum(const CutCase& one, const std::vector<int32_t>& stage_of) {
  int64_t sum = 0;
  for (int32_t unit = 0; unit < one.graph.num_units; ++unit)
    sum += one.graph.compute(unit, 0) * one.weights.compute[as_index(stage_of[as_index(unit)])];
  for (size_t tensor = 0; tensor < one.graph.tensor_bytes.size(); ++tensor) {
    const int32_t from = stage_of[as_index(one.graph.tensor_producer[tensor])];
    std::set<int32_t> readers;
    for (const int32_t consumer : one.graph.tensor_consumers[tensor]) readers.insert(stage_of[as_index(consumer)]);
    readers.erase(from);
    for (const int32_t to : readers)
      sum += (one.graph.tensor_bytes[tensor] + 1) *
             (one.weights.transfers[as_index(from)] + one.weights.transfers[as_index(to)]);
  }
  return sum;
}

bool is_plan(const CutCase& one, const std::vector<int32_t>& stage_of) {
  for (int32_t unit = 0; unit < one.graph.num_units; ++unit) {
    const int32_t stage = stage_of[as_index(unit)];
    if (!one.ranges.may_have(unit, stage)) return false;
    for (const int32_t tensor : one.graph.inputs[as_index(unit)]) {
      if (stage_of[as_index(one.graph.tensor_producer[as_index(tensor)])] > stage) return false;
    }
  }
  return true;
}

bool meets_demands(const CutCase& one, const std::vector<int32_t>& stage_of) {
  for (size_t tensor = 0; tensor < one.graph.tensor_bytes.size(); ++tensor) {
    int32_t stages = 0;
    for (const int32_t consumer : one.graph.tensor_consumers[tensor]) stages |= 1 << stage_of[as_index(consumer)];
    if ((one.ranges.read_in[tensor] & ~stages) != 0) return false;
  }
  return true;
}

int64_t least_defined_sum(const CutCase& one) {
  int64_t least = INT64_MAX, plans = 1;
  for (int32_t unit = 0; unit < one.graph.num_units; ++unit) plans *= one.stages;
  for (int64_t plan = 0; plan < plans; ++plan) {
    std::vector<int32_t> stage_of;
    int64_t rest = plan;
    for (int32_t unit = 0; unit < one.graph.num_units; ++unit, rest /= one.stages)
      stage_of.push_back(static_cast<int32_t>(rest % one.stages));
    if (is_plan(one, stage_of) && meets_demands(one, stage_of)) least = std::min(least, defined_sum(one, stage_of));
  }
  return least;
}

std::optional<std::string> check_cut(const CutCase& one) {
  const int64_t least = least_defined_sum(one);
  for (const auto choice : {BorderChoice::all_alike, BorderChoice::lowest_first, BorderChoice::highest_first}) {
    WeightedCut cut(one.graph);
    const int64_t sum = cut.least_sum(one.ranges, one.weights, choice, 1'000'000);
    if (sum > least) return fmt::format("{} of {}", sum, least);
    // Between two stages there is one border, and each tensor crosses it once.
    if (one.stages == 2 && !has_demands(one) && sum < least) return fmt::format("{} of {}", sum, least);
    if (!is_plan(one, cut.stages())) return "stages out of range, or an edge that leads back";
    if (!has_demands(one) && defined_sum(one, cut.stages()) < sum) return "the plan of the cut is below its sum";
    if (sum > 0 && cut.least_sum(one.ranges, one.weights, choice, sum) != sum) return "another sum at its limit";
    if (sum > 1 && cut.least_sum(one.ranges, one.weights, choice, sum / 2) != sum / 2) return "above the limit";
  }
  return {};
}

TEST(WeightedCut, IsNeverAboveTheBestPlan) {
  kit::Property<CutCase> property;
  property.seed = 5;
  property.runs_ci = 3000;
  property.runs_full = 100'000;
  property.generate = random_cut_case;
  property.show = [](const CutCase& one) {
    return fmt::format("{} stages, {} units", one.stages, one.graph.num_units);
  };
  property.check = check_cut;
  EXPECT_TRUE(kit::holds(property));
}

// A unit of 10 ns in stage 0 makes a tensor for two units in the stages 1 to 3. A transfer takes 7 ns at either end.
TEST(WeightedCut, ReadersThatAreSureCountInTheirStages) {
  SplitProblem problem{.kinds = {"cpu"}};
  for (const int64_t time : {10, 100, 100}) problem.nodes.push_back({.name = "n", .time_ns = {time}});
  problem.tensors = {{.producer = 0, .consumers = {1, 2}, .size_bytes = 6}};
  const std::vector<SplitLink> links(4, {1'000'000'000, 1});
  for (const char* name : {"a", "b", "c", "d"}) problem.devices.push_back({.name = name, .links = links});
  const SplitGraph graph = contract_problem(problem).graph;
  StageRanges ranges(graph, 4);
  ranges.last[0] = 0;
  ranges.first[1] = ranges.first[2] = 1;
  StageWeights weights;
  weights.transfers = {1, 10, 100, 999};
  WeightedCut cut(graph);
  const auto least = [&] { return cut.least_sum(ranges, weights, BorderChoice::lowest_first, 1'000'000); };
  EXPECT_EQ(least(), 7 * (1 + 10));
  ranges.read_in[0] = 1 << 1 | 1 << 3;
  EXPECT_EQ(least(), 7 * (1 + 10) + 7 * (1 + 999));
}

// A unit whose time counts least in stage 1, where it may not lie.
TEST(WeightedCut, BarredStagesAreLeftOut) {
  SplitProblem problem{.kinds = {"cpu"}, .nodes = {{.name = "n", .time_ns = {10}}}};
  for (const char* name : {"a", "b", "c"}) problem.devices.push_back({.name = name});
  const SplitGraph graph = contract_problem(problem).graph;
  StageRanges ranges(graph, 3);
  StageWeights weights;
  weights.compute = {5, 1, 3};
  WeightedCut cut(graph);
  EXPECT_EQ(cut.least_sum(ranges, weights, BorderChoice::all_alike, 1000), 10);
  ranges.barred[0] = 1 << 1;
  EXPECT_EQ(cut.least_sum(ranges, weights, BorderChoice::all_alike, 1000), 30);
  EXPECT_EQ(cut.stages(), std::vector<int32_t>{2});
}

}  // namespace
}  // namespace headrace::plan
