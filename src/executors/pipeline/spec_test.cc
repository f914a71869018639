// The rules of a pipeline's graph: each message names the port, the stage or the group.
#include <gmock/gmock.h>

#include "executors/pipeline/test_stages.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::HasSubstr;

std::shared_ptr<StageCode> typed_code(std::vector<Port> inputs, std::vector<Port> outputs) {
  return make_function_stage(make_packed([](NDArray x) { return x; }), std::move(inputs), std::move(outputs));
}

// Two stages: x (2) -> a -> (3) -> b -> y.
PipelineSpec two_stages() {
  PipelineSpec spec{.inputs = {float_port("x", {2})}, .groups = {{}, {}}};
  spec.stages = {stage_of("a", typed_code({float_port("in", {2})}, {float_port("mid", {3})}), {from_input(0)}, 0),
                 stage_of("b", typed_code({float_port("in", {3})}, {float_port("out", {4})}), {from_stage(0)}, 1)};
  spec.outputs = {{.name = "y", .source = from_stage(1)}};
  return spec;
}

std::string refusal(const std::function<void(PipelineSpec&)>& change) {
  PipelineSpec spec = two_stages();
  change(spec);
  return message_thrown([&] { check_spec(spec); });
}

TEST(PipelineSpecs, TheOrderFollowsTheConnections) {
  PipelineSpec spec = two_stages();
  EXPECT_EQ(check_spec(spec), (std::vector<size_t>{0, 1}));
  std::swap(spec.stages[0], spec.stages[1]);
  spec.stages[0].inputs = {from_stage(1)};
  spec.outputs[0].source = from_stage(0);
  EXPECT_EQ(check_spec(spec), (std::vector<size_t>{1, 0}));
}

TEST(PipelineSpecs, NamesAreThereAndDiffer) {
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages.clear(); }), HasSubstr("the pipeline has no stages"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.outputs.clear(); }), HasSubstr("the pipeline has no outputs"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[1].name = "a"; }),
              HasSubstr("two of the pipeline's stages are called 'a'"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[1].name = ""; }), HasSubstr("stage has no name"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.inputs.push_back(s.inputs[0]); }),
              HasSubstr("two of the pipeline's inputs are called 'x'"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.outputs.push_back(s.outputs[0]); }),
              HasSubstr("two of the pipeline's outputs are called 'y'"));
  EXPECT_THAT(refusal([](PipelineSpec& s) {
                s.params = {{.group = "g", .port = any_port("w")}, {.group = "g", .port = any_port("w")}};
              }),
              HasSubstr("two of the pipeline's parameters are called 'g.w'"));
}

TEST(PipelineSpecs, SourcesExist) {
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[0].inputs = {from_input(1)}; }),
              HasSubstr("input 'in' of stage 'a' reads what the pipeline does not have"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[1].inputs = {from_stage(0, 1)}; }),
              HasSubstr("input 'in' of stage 'b' reads output 1 of stage 'a', which has 1"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[1].inputs = {from_stage(7)}; }),
              HasSubstr("input 'in' of stage 'b' reads what the pipeline does not have"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[1].inputs = {}; }),
              HasSubstr("stage 'b' has 1 inputs, and 0 of them are connected"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.outputs[0].source = from_input(0); }),
              HasSubstr("output 'y' of the pipeline is connected to input 'x' of the pipeline; only a stage's output"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.outputs[0].source = from_stage(1, 3); }),
              HasSubstr("output 'y' of the pipeline reads output 3 of stage 'b'"));
}

TEST(PipelineSpecs, TypesAreEqual) {
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.inputs[0].spec.shape = {5}; }),
              HasSubstr("input 'x' of the pipeline is float32 (5), and input 'in' of stage 'a' is float32 (2)"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.inputs[0].spec.dtype = DataType::parse("int8"); }),
              HasSubstr("input 'x' of the pipeline is int8 (2)"));
  EXPECT_THAT(refusal([](PipelineSpec& s) {
                s.stages[1].inputs = {from_stage(0)};
                s.stages[1].replicas = {typed_code({float_port("in", {9})}, {float_port("out", {4})})};
              }),
              HasSubstr("output 'mid' of stage 'a' is float32 (3), and input 'in' of stage 'b' is float32 (9)"));
  EXPECT_EQ(refusal([](PipelineSpec& s) { s.stages[1].replicas = {typed_code({any_port("in")}, {any_port("out")})}; }),
            "");
}

TEST(PipelineSpecs, EverythingIsUsed) {
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.inputs.push_back(any_port("z")); }),
              HasSubstr("nothing reads input 'z' of the pipeline"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.params = {{.group = "g", .port = any_port("w")}}; }),
              HasSubstr("nothing reads parameter 'w' of group 'g'"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.groups.push_back({.name = "idle"}); }),
              HasSubstr("group 2 'idle' has no stages"));
}

TEST(PipelineSpecs, StagesGroupsAndReplicas) {
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[0].replicas.clear(); }), HasSubstr("stage 'a' has no code"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[0].group = 2; }),
              HasSubstr("stage 'a' is in group 2, and there are 2"));
  EXPECT_THAT(refusal([](PipelineSpec& s) {
                s.stages[1].group = 0;
                s.groups.pop_back();
                s.stages[0].replicas.push_back(s.stages[0].replicas[0]);
              }),
              HasSubstr("stage 'a' has 2 replicas, so it cannot share its group"));
  EXPECT_THAT(refusal([](PipelineSpec& s) {
                s.stages[0].replicas.push_back(typed_code({float_port("in", {2})}, {float_port("mid", {8})}));
              }),
              HasSubstr("the replicas of stage 'a' differ"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[0].time_limit_seconds = -1; }),
              HasSubstr("the time limit of stage 'a' is -1 seconds"));
  EXPECT_THAT(refusal([](PipelineSpec& s) { s.stages[0].inputs = {from_stage(1)}; }),
              ::testing::AnyOf(HasSubstr("in a circle"), HasSubstr("is float32")));
}

TEST(PipelineSpecs, CirclesNameTheirStages) {
  PipelineSpec spec = chain_of({adder(0), adder(0), adder(0)});
  spec.stages[1].inputs = {from_stage(2)};
  EXPECT_THAT(message_thrown([&] { check_spec(spec); }), HasSubstr("it is among: s1, s2"));
  spec = chain_of({adder(0)});
  spec.stages[0].inputs = {from_stage(0)};
  spec.inputs.clear();
  EXPECT_THAT(message_thrown([&] { check_spec(spec); }), HasSubstr("it is among: s0"));
}

TEST(PipelineSpecs, OptionsHaveTheirRanges) {
  const auto refused = [](const PipelineOptions& options) {
    return message_thrown([&] { Pipeline pipeline(chain_of({adder(0)}), options); });
  };
  EXPECT_THAT(refused({.max_inflight = 0}), HasSubstr("max_inflight is 0"));
  EXPECT_THAT(refused({.max_inflight = size_t{1} << 40}), HasSubstr("max_inflight is 1099511627776"));
  EXPECT_THAT(refused({.probe_seconds = -1}), HasSubstr("probe_seconds is -1"));
  EXPECT_THAT(refused({.stop_seconds = 1e9}), HasSubstr("stop_seconds is 1000000000"));
  PipelineSpec spec = chain_of({adder(0)});
  spec.groups[0].cpus = {9999};
  EXPECT_THAT(message_thrown([&] { Pipeline pipeline(spec); }), HasSubstr("processor 9999 was asked for"));
  spec.groups[0].cpus = {0, 0};
  EXPECT_THAT(message_thrown([&] { Pipeline pipeline(spec); }), HasSubstr("processor 0 is named twice; name it once"));
}

}  // namespace
}  // namespace headrace::executors::pipeline
