// The slots of inputs: hand-made pipelines.
#include "executors/pipeline/channel_slots.h"

#include <gmock/gmock.h>

#include "executors/pipeline/test_stages.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::ElementsAre;

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

// Returns the slots of b's input, and of both inputs of c.
std::vector<size_t> slots_of_joins(const PipelineSpec& spec, size_t max_inflight = 16) {
  return slots_of_inputs(spec, check_spec(spec), max_inflight);
}

TEST(ChannelSlots, AnInputHasThoseOfItsEdge) { EXPECT_THAT(slots_of_joins(skipping_spec()), ElementsAre(2, 4, 2)); }

TEST(ChannelSlots, ReplicasHaveOneEachAndRequestsBoundThem) {
  PipelineSpec spec = skipping_spec();
  spec.stages[1].replicas.assign(3, spec.stages[1].replicas[0]);
  EXPECT_THAT(slots_of_joins(spec), ElementsAre(2 + 2, 4, 2 + 2));
  EXPECT_THAT(slots_of_joins(spec, 2), ElementsAre(3, 3, 4));
}

}  // namespace
}  // namespace headrace::executors::pipeline
