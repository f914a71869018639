// Pipelines that are built, and what they do before they take requests.
#include "executors/pipeline/warm_up.h"

#include <gmock/gmock.h>

#include <atomic>

#include "executors/pipeline/test_stages.h"
#include "kit/errors.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// y = x + 1 for tensors of two numbers; keeps what it was called with.
class Recorder final : public StageCode {
 public:
  explicit Recorder(int32_t most_in_batch = 0) : most_in_batch_(most_in_batch) {}

  const std::vector<Port>& inputs() const override { return inputs_; }
  const std::vector<Port>& outputs() const override { return outputs_; }
  int32_t most_in_batch() const override { return most_in_batch_; }
  bool is_program() const override { return is_program_; }

  Ref<ErrorObj> run(std::span<const Value* const> inputs, std::span<Value> outputs) noexcept override {
    if (gate != nullptr) gate->pass();
    thread = std::this_thread::get_id();
    for (const Value* input : inputs) {
      const auto x = input->as<NDArray>();
      seen.push_back({x.data<float>()[0], x.data<float>()[1]});
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      auto* y = outputs[i].as<NDArray>().data<float>();
      for (size_t k = 0; k < 2; ++k) y[k] = seen[seen.size() - outputs.size() + i][k] + 1;
    }
    if (!fails) return {};
    Ref<ErrorObj> error = make_object<ErrorObj>();
    error->kind = "UserError", error->message = "the chip is gone";
    return error;
  }
  Ref<ErrorObj> run_batch(const BatchCall& call) noexcept override { return run(call.inputs, call.outputs); }

  Gate* gate = nullptr;
  bool fails = false, is_program_ = true;
  std::vector<std::vector<float>> seen;
  std::thread::id thread;

 private:
  const int32_t most_in_batch_;
  std::vector<Port> inputs_{float_port("x", {1, 2})}, outputs_{float_port("y", {1, 2})};
};

PipelineSpec spec_of(std::vector<std::shared_ptr<StageCode>> replicas) {
  PipelineSpec spec{.inputs = {float_port("x", {1, 2})}, .groups = {{}}};
  spec.stages = {stage_of("first", replicas[0], {from_input(0)}, 0)};
  spec.stages[0].replicas = std::move(replicas);
  spec.outputs = {{.name = "y", .source = from_stage(0)}};
  return spec;
}

Value floats(float a, float b) {
  const std::vector<float> values{a, b};
  return Value(NDArray::from_vector<float>({1, 2}, DataType::float_(32), values));
}

// Rule 13: a pipeline is built, and then it runs.
TEST(WarmUp, ABuiltPipelineTakesRequestsOnceItIsStarted) {
  Pipeline pipeline(chain_of({adder(1), adder(2)}), {.starts = false});
  EXPECT_EQ(pipeline.state(), State::built);
  EXPECT_EQ(state_name(pipeline.state()), "built");
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{1})}); }), "PipelineNotStarted");
  EXPECT_EQ(kind_thrown([&] { pipeline.push({Value(int64_t{1})}); }), "PipelineNotStarted");
  EXPECT_EQ(pipeline.metrics().in_flight, 0U);
  pipeline.start();
  EXPECT_EQ(pipeline.state(), State::running);
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{1})})), 4);
  pipeline.start();
  EXPECT_EQ(number_of(pipeline.submit({Value(int64_t{2})})), 5);
}

TEST(WarmUp, ABuiltPipelineThatIsStoppedDoesNotStart) {
  for (const bool drains : {false, true}) {
    Pipeline pipeline(chain_of({adder(1)}), {.warms_up = true, .starts = false});
    if (drains) {
      EXPECT_TRUE(pipeline.drain());
    } else {
      EXPECT_THAT(pipeline.stop(), ElementsAre());
    }
    EXPECT_EQ(pipeline.state(), State::stopped);
    EXPECT_EQ(kind_thrown([&] { pipeline.start(); }), "PipelineStopped");
    EXPECT_EQ(kind_thrown([&] { pipeline.submit({Value(int64_t{1})}); }), "PipelineStopped");
  }
  Pipeline unused(chain_of({adder(1)}), {.starts = false});  // ends without having begun
}

TEST(WarmUp, ProgramsAreCalledOnceOnZerosInTheirThreads) {
  const auto first = std::make_shared<Recorder>(), second = std::make_shared<Recorder>();
  Pipeline pipeline(spec_of({first, second}), {.warms_up = true});
  for (const auto& code : {first, second}) {
    EXPECT_THAT(code->seen, ElementsAre(ElementsAre(0, 0)));
    EXPECT_NE(code->thread, std::this_thread::get_id());
  }
  EXPECT_NE(first->thread, second->thread);
  EXPECT_EQ(pipeline.metrics().stages[0].items, 0U);  // it was no request
  const NDArray y = pipeline.submit({floats(3, 4)}).results()[0].as<NDArray>();
  EXPECT_EQ(y.data<float>()[1], 5);
}

TEST(WarmUp, ABatchIsAsLargeAsACallMayBe) {
  const auto code = std::make_shared<Recorder>(3);
  PipelineSpec spec = spec_of({code});
  spec.stages[0].batch = {.max_batch = 3};
  const Pipeline pipeline(std::move(spec), {.warms_up = true});
  EXPECT_EQ(code->seen.size(), 3U);
  EXPECT_THAT(code->seen, Each(ElementsAre(0, 0)));
}

// A function may do more than compute its outputs, so that nobody calls it but for a request.
TEST(WarmUp, FunctionsAreNotCalled) {
  const auto code = std::make_shared<Recorder>();
  code->is_program_ = false;
  const Pipeline pipeline(spec_of({code}), {.warms_up = true});
  EXPECT_THAT(code->seen, ElementsAre());
}

TEST(WarmUp, IsLeftOutUnlessAskedFor) {
  const auto code = std::make_shared<Recorder>();
  const Pipeline pipeline(spec_of({code}));
  EXPECT_EQ(pipeline.state(), State::running);
  EXPECT_THAT(code->seen, ElementsAre());
}

TEST(WarmUp, AProgramThatFailsIsAnErrorOfTheStart) {
  const auto code = std::make_shared<Recorder>();
  code->fails = true;
  const std::string wanted = "stage 'first' failed on zeros, before the first request: the chip is gone";
  EXPECT_EQ(kit::user_error_of([&] { const Pipeline pipeline(spec_of({code}), {.warms_up = true}); }), wanted);
  Pipeline pipeline(spec_of({code}), {.warms_up = true, .starts = false});
  EXPECT_EQ(kit::user_error_of([&] { pipeline.start(); }), wanted);
  EXPECT_EQ(pipeline.state(), State::stopped);
}

TEST(WarmUp, ThePipelineIsBuiltUntilItEnds) {
  Gate gate;
  const auto code = std::make_shared<Recorder>();
  code->gate = &gate;
  Pipeline pipeline(spec_of({code}), {.warms_up = true, .starts = false});
  std::thread starter([&] { pipeline.start(); });
  gate.await(1);
  EXPECT_EQ(pipeline.state(), State::built);
  EXPECT_EQ(kind_thrown([&] { pipeline.submit({floats(1, 2)}); }), "PipelineNotStarted");
  gate.open();
  starter.join();
  EXPECT_EQ(pipeline.state(), State::running);
}

TEST(WarmUp, APipelineMayBeStoppedMeanwhile) {
  Gate gate;
  const auto code = std::make_shared<Recorder>();
  code->gate = &gate;
  Pipeline pipeline(spec_of({code}), {.warms_up = true, .starts = false});
  std::string kind;
  std::thread starter([&] { kind = kind_thrown([&] { pipeline.start(); }); });
  gate.await(1);
  EXPECT_THAT(pipeline.stop(after(2ms)), ElementsAre("first"));
  EXPECT_EQ(pipeline.state(), State::failed);
  gate.open();
  starter.join();
  EXPECT_EQ(kind, "PipelineStopped");
  EXPECT_THAT(pipeline.stop(), ElementsAre());
  EXPECT_EQ(pipeline.state(), State::stopped);
}

}  // namespace
}  // namespace headrace::executors::pipeline
