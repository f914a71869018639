// The slots of outputs: hand-made pipelines.
#include "executors/pipeline/channel_slots.h"

#include <gmock/gmock.h>

#include "executors/pipeline/test_stages.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using SlotsOfOutputs = std::vector<std::vector<size_t>>;

StageSpec joining_stage(const std::string& name, std::vector<Source> sources, size_t group) {
  std::vector<Port> inputs;
  for (size_t i = 0; i < sources.size(); ++i) inputs.push_back(float_port("in" + std::to_string(i), {2}));
  auto code = make_function_stage(make_packed([](NDArray x) { return x; }), inputs, {float_port("out", {2})});
  return stage_of(name, std::move(code), std::move(sources), group);
}

// a -> b -> c, and c reads a, too.
PipelineSpec skipping_spec() {
  PipelineSpec spec{.inputs = {float_port("x", {2})}, .groups = {{}, {}, {}}};
  spec.stages = {joining_stage("c", {from_stage(2), from_stage(1)}, 0), joining_stage("b", {from_stage(2)}, 1),
                 joining_stage("a", {from_input(0)}, 2)};
  spec.outputs = {{.name = "y", .source = from_stage(0)}};
  return spec;
}

SlotsOfOutputs slots_of(const PipelineSpec& spec, size_t max_inflight = 16) {
  return slots_of_outputs(spec, check_spec(spec), max_inflight);
}

TEST(ChannelSlots, AnOutputHasThoseOfItsLongestEdge) {
  EXPECT_EQ(slots_of(skipping_spec()), (SlotsOfOutputs{{0}, {2}, {4}}));
}

TEST(ChannelSlots, ReplicasHaveOneEachAndRequestsBoundThem) {
  PipelineSpec spec = skipping_spec();
  spec.stages[1].replicas.assign(3, spec.stages[1].replicas[0]);
  EXPECT_EQ(slots_of(spec), (SlotsOfOutputs{{0}, {2 + 2}, {4 + 0}}));
  EXPECT_EQ(slots_of(spec, 2), (SlotsOfOutputs{{0}, {4}, {3}}));
}

}  // namespace
}  // namespace headrace::executors::pipeline
