// Splitting into stages: the text of plans, constants and colocated nodes by hand, and what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kit/errors.h"
#include "kit/golden.h"
#include "kit/split_networks.h"
#include "plan/pipeline/split.h"

namespace headrace::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A chain of nodes that take 4, 3, 2, ... us and make 1,000 bytes, for two equal devices.
SplitProblem chain(int32_t nodes) {
  SplitProblem problem{.kinds = {"cpu"}};
  for (int32_t i = 0; i < nodes; ++i) {
    problem.nodes.push_back(
        {.name = fmt::format("n{}", i), .time_ns = {1000 * (nodes - i)}, .constant_bytes = 2000, .working_bytes = 500});
    if (i + 1 < nodes) problem.tensors.push_back({.producer = i, .consumers = {i + 1}, .size_bytes = 1000});
  }
  const std::vector<SplitLink> links(2, {1'000'000'000, 50});
  problem.devices = {{.name = "left", .links = links}, {.name = "right", .links = links}};
  return problem;
}

std::string golden(const std::string& name) { return HEADRACE_SOURCE_DIR "/src/plan/pipeline/tests/" + name; }

TEST(SplitText, AChainOverTwoDevices) {
  const SplitProblem problem = chain(4);
  const SplitPlan plan = split_pipeline(problem);
  EXPECT_THAT(plan.stage_of_node, ElementsAre(0, 1, 1, 1));
  EXPECT_EQ(plan.period_ns, 3000 + 2000 + 1000 + 1050);
  EXPECT_TRUE(plan.is_optimal());
  EXPECT_TRUE(kit::matches_golden(golden("chain.plan.txt"), format_plan(problem, plan)));
}

TEST(SplitText, ReplicasUnlikeDevicesAndAGap) {
  SplitProblem problem = chain(6);
  problem.kinds = {"cpu", "gpu"};
  for (SplitNode& node : problem.nodes) node.time_ns.push_back(node.time_ns[0] / 4);
  problem.devices.push_back(
      {.name = "card", .kind = 1, .memory_bytes = 6000, .links = std::vector<SplitLink>(3, {250'000'000, 100})});
  for (int i = 0; i < 2; ++i) problem.devices[static_cast<size_t>(i)].links.resize(3, {250'000'000, 100});
  problem.max_replicas = 2;
  const SplitPlan plan = split_pipeline(problem, {.max_downsets = 0});
  EXPECT_EQ(plan.method, SplitMethod::orders);
  EXPECT_TRUE(kit::matches_golden(golden("unlike.plan.txt"), format_plan(problem, plan)));
}

TEST(SplitText, EachStageHoldsTheConstantsThatItReads) {
  SplitProblem problem = chain(2);
  problem.nodes.push_back({.name = "table", .constant_bytes = 70'000, .is_constant = true});
  problem.tensors.push_back({.producer = 2, .consumers = {1, 0}, .size_bytes = 70'000});
  problem.tensors[0].size_bytes = 1;
  const SplitPlan plan = split_pipeline(problem);
  EXPECT_THAT(plan.stage_of_node, ElementsAre(0, 1, 0));
  ASSERT_EQ(plan.stages.size(), 2U);
  EXPECT_EQ(plan.stages[0].memory_bytes, 2000 + 500 + 70'000 + 2);
  EXPECT_EQ(plan.stages[1].memory_bytes, 2000 + 500 + 70'000 + 2);
  EXPECT_EQ(plan.stages[1].transfer_in_ns, 51);
}

TEST(SplitText, ColocatedNodesTakeWhatLiesBetweenThem) {
  SplitProblem problem = chain(4);
  problem.colocated = {{2, 0}};
  problem.tensors[2].size_bytes = 10;
  const SplitPlan plan = split_pipeline(problem);
  EXPECT_EQ(plan.num_units, 2);
  EXPECT_THAT(plan.stage_of_node, ElementsAre(0, 0, 0, 1));
}

TEST(SplitText, TheSameProblemGivesTheSamePlan) {
  for (const auto& problem : {kit::resnet50_training({}), kit::inception({.gpus = 2}, false)})
    EXPECT_EQ(format_plan(problem, split_pipeline(problem)), format_plan(problem, split_pipeline(problem)));
}

// Changes a problem and returns what the planner says of it.
template <typename Change>
std::string refusal(const Change& change) {
  SplitProblem problem = chain(4);
  change(problem);
  return kit::user_error_of([&] { split_pipeline(problem); });
}

TEST(SplitText, RefusesNodesThatNoDeviceCanRun) {
  const std::string alone = refusal([](SplitProblem& problem) { problem.nodes[1].time_ns = {kCannotRun}; });
  EXPECT_THAT(alone, HasSubstr("no device can run it: it has no time for 'cpu'"));
  EXPECT_THAT(alone, HasSubstr("n1"));
  const std::string between = refusal([](SplitProblem& problem) {
    problem.kinds = {"cpu", "gpu"};
    problem.devices[1].kind = 1;
    for (SplitNode& node : problem.nodes) node.time_ns = {5, kCannotRun};
    problem.nodes[1].time_ns = {kCannotRun, 5};
    problem.colocated = {{0, 2}};
  });
  EXPECT_THAT(between, HasSubstr("it must share a stage with 'n1', 'n2' (colocated, or on a path between"));
}

TEST(SplitText, RefusesWhatNoDeviceHasTheMemoryFor) {
  EXPECT_THAT(refusal([](SplitProblem& problem) {
                for (SplitDevice& device : problem.devices) device.memory_bytes = 2400;
              }),
              HasSubstr("it needs 2500 bytes with what must share its stage, and the largest device that can run it "
                        "has 2400"));
  const std::string all = refusal([](SplitProblem& problem) {
    problem.devices[0].memory_bytes = 5000;
    problem.devices[1].memory_bytes = 5001;
  });
  EXPECT_THAT(all, HasSubstr("no plan fits into the devices' memory: constants take 8000 bytes"));
  EXPECT_THAT(all, HasSubstr("device 'right'"));
}

// No device holds the constants of two nodes, so there are three stages. The first one makes 1,000 bytes that the
// second one reads, and 1,000 that one of the others reads.
TEST(SplitText, ASkipEdgeTakesMoreSlots) {
  const auto split_with = [](int64_t memory, bool skips) {
    SplitProblem problem = chain(3);
    for (SplitNode& node : problem.nodes) node.constant_bytes = 20'000;
    problem.devices.resize(3, problem.devices[1]);
    for (SplitDevice& device : problem.devices) {
      device.memory_bytes = memory;
      device.links.resize(3, device.links[0]);
    }
    problem.tensors.push_back({.producer = 0, .consumers = {skips ? 2 : 1}, .size_bytes = 1000});
    return split_pipeline(problem);
  };
  const auto memory_of = [](const SplitPlan& plan) {
    std::vector<int64_t> bytes;
    for (const SplitStage& stage : plan.stages) bytes.push_back(stage.memory_bytes);
    return bytes;
  };
  // Two slots of a tensor between neighbours, four of one that passes a stage by.
  EXPECT_THAT(memory_of(split_with(26'500, false)), ElementsAre(20'500 + 4000, 20'500 + 6000, 20'500 + 2000));
  EXPECT_THAT(memory_of(split_with(26'500, true)), ElementsAre(20'500 + 6000, 20'500 + 4000, 20'500 + 6000));
  EXPECT_THAT(kit::user_error_of([&] { split_with(26'499, true); }),
              HasSubstr("no plan fits into the devices' memory"));
}

// n1 reads one buffer while it writes the next one; n2 and n3 hold one each. The cut between n1 and n2 leaves the
// first.
TEST(SplitText, BuffersAreHeldWhileTheirNodesRun) {
  SplitProblem problem = chain(4);
  for (int32_t i = 0; i < 3; ++i) {
    problem.nodes[static_cast<size_t>(i)].buffer = i;
    problem.buffers.push_back({.producer = i, .consumers = {i + 1}, .size_bytes = i == 2 ? 40 : 300});
  }
  problem.devices.resize(1);
  problem.devices[0].links.clear();
  EXPECT_EQ(split_pipeline(problem).stages.at(0).memory_bytes, 4 * 2000 + 500 + 300 + 300);
  problem = chain(4);
  for (int32_t i = 0; i < 3; ++i) {
    problem.nodes[static_cast<size_t>(i)].buffer = i;
    problem.buffers.push_back({.producer = i, .consumers = {i + 1}, .size_bytes = i == 2 ? 40 : 300});
  }
  problem.colocated = {{0, 1}, {2, 3}};
  const SplitPlan plan = split_pipeline(problem);
  ASSERT_THAT(plan.stage_of_node, ElementsAre(0, 0, 1, 1));
  EXPECT_EQ(plan.stages[0].memory_bytes, 2 * 2000 + 500 + 300 + 2 * problem.tensors[1].size_bytes);
  EXPECT_EQ(plan.stages[1].memory_bytes, 2 * 2000 + 500 + 40 + 2 * problem.tensors[1].size_bytes);
}

TEST(SplitText, RefusesACycleWithItsNodes) {
  EXPECT_THAT(refusal([](SplitProblem& problem) { problem.tensors[2].consumers = {1}; }),
              HasSubstr("the graph has a cycle: 'n1' -> 'n2' -> 'n1'"));
}

TEST(SplitText, RefusesNumbersOutOfRange) {
  using Problem = SplitProblem;
  const std::vector<std::pair<std::string, std::function<void(Problem&)>>> cases{
      {"there is no device to run the pipeline", [](Problem& p) { p.devices.clear(); }},
      {"its kind is 1, there are 1 kinds", [](Problem& p) { p.devices[1].kind = 1; }},
      {"its memory is -1 bytes", [](Problem& p) { p.devices[1].memory_bytes = -1; }},
      {"it has 1 links, there are 2 devices", [](Problem& p) { p.devices[1].links.resize(1); }},
      {"a link's bandwidth or latency is negative", [](Problem& p) { p.devices[1].links[0].latency_ns = -1; }},
      {"there is no node to split", [](Problem& p) { p.nodes.clear(); }},
      {"it has 2 times, there are 1 kinds", [](Problem& p) { p.nodes[0].time_ns = {1, 2}; }},
      {"a time or size is -2", [](Problem& p) { p.nodes[0].time_ns = {-2}; }},
      {"or all together pass 2^60", [](Problem& p) { p.nodes[0].constant_bytes = INT64_MAX; }},
      {"its producer is the node 4 of 4", [](Problem& p) { p.tensors[0].producer = 4; }},
      {"a consumer is the node -1 of 4", [](Problem& p) { p.tensors[0].consumers = {-1}; }},
      {"a constant must not have inputs", [](Problem& p) { p.nodes[1].is_constant = true; }},
      {"its size is -1 bytes", [](Problem& p) { p.tensors[0].size_bytes = -1; }},
      {"its buffer is 1 of 1",
       [](Problem& p) {
         p.buffers = {{}};
         p.nodes[2].buffer = 1;
       }},
      {"it has the node 4 of 4", [](Problem& p) { p.buffers = {{.producer = 4}}; }},
      {"it has the node -1 of 4", [](Problem& p) { p.buffers = {{.consumers = {-1}}}; }},
      {"a constant must not have a buffer",
       [](Problem& p) {
         p.nodes[0].is_constant = true;
         p.buffers = {{.producer = 0}};
       }},
      {"a node must not write a buffer that it reads",
       [](Problem& p) {
         p.buffers = {{.consumers = {2}}};
         p.nodes[2].buffer = 0;
       }},
      {"its size is -8 bytes", [](Problem& p) { p.buffers = {{.size_bytes = -8}}; }},
      {"more than 2^60 ns", [](Problem& p) { p.devices[0].links[1].latency_ns = INT64_MAX; }},
      {"max_replicas is 0", [](Problem& p) { p.max_replicas = 0; }},
      {"it has the node 7 of 4", [](Problem& p) { p.colocated = {{7}}; }},
      {"a constant must not be colocated", [](Problem& p) {
         p.nodes[0].is_constant = true;
         p.colocated = {{0, 1}};
       }}};
  for (const auto& [message, change] : cases) EXPECT_THAT(refusal(change), HasSubstr(message));
}

}  // namespace
}  // namespace headrace::plan
