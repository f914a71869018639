// Stages of programs for batches: what the programs get, and what the requests get back. The programs are stand-ins
// that show their inputs.
#include <gmock/gmock.h>

#include <atomic>

#include "executors/pipeline/batch_ports.h"
#include "executors/pipeline/test_stages.h"
#include "kit/count_allocations.h"

namespace headrace::executors::pipeline {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

artifact::TensorSpec float_spec(std::string name, std::vector<int64_t> shape) {
  return {.name = std::move(name), .dtype = DataType::parse("float32"), .shape = std::move(shape)};
}

// y = x * 10 + w for x of (batch, 2) and w of (2), which it reads and writes in place.
class ShowingExecutor final : public Executor {
 public:
  explicit ShowingExecutor(int64_t batch)
      : inputs_{float_spec("x", {batch, 2}), float_spec("w", {2})}, outputs_{float_spec("y", {batch, 2})} {
    seen.reserve(static_cast<size_t>(batch) * 2);
  }

  const std::vector<artifact::TensorSpec>& inputs() const override { return inputs_; }
  const std::vector<artifact::TensorSpec>& outputs() const override { return outputs_; }
  const std::vector<artifact::BoundParam>& bound_params() const override { return bound_params_; }
  int32_t num_threads() const override { return 1; }
  size_t num_steps() const override { return 1; }
  Metrics metrics() const override { return {}; }
  std::vector<FallbackEvent> fallbacks() const override { return {}; }
  Status set_input(size_t index, const DLTensor& tensor) noexcept override { return bind_input(index, tensor); }
  Status give_input(size_t index, const DLTensor& tensor) noexcept override { return bind_input(index, tensor); }
  Status bind_input(size_t index, const DLTensor& tensor) noexcept override {
    bound_[index] = tensor;
    return {};
  }
  Status bind_output(size_t, const DLTensor& tensor) noexcept override {
    bound_[2] = tensor;
    return {};
  }
  Status run(std::span<uint64_t>) noexcept override {
    const int64_t batch = inputs_[0].shape[0];
    const auto* x = static_cast<const float*>(bound_[0].data);
    const auto* w = static_cast<const float*>(bound_[1].data);
    auto* y = static_cast<float*>(bound_[2].data);
    seen.assign(x, x + batch * 2);  // has room from the start
    ++runs;
    if (fails) return {.code = 1, .reason = HR_REASON_KERNEL_FAILED, .op = "mul", .message = "the kernel failed"};
    for (int64_t i = 0; i < batch * 2; ++i) y[i] = x[i] * 10 + w[i % 2];
    return {};
  }
  const DLTensor& input(size_t index) const override { return bound_[index]; }
  const DLTensor& output(size_t) const override { return bound_[2]; }
  bool has_output(size_t) const override { return true; }
  void add_memory(MemoryUse& memory) const override {
    memory.working_bytes += working;
    for (const auto weight : read_weights) memory.add_weight(weight);
  }

  int64_t working = 0;
  std::vector<std::span<const std::byte>> read_weights;
  std::vector<float> seen;  // the rows of the last run
  int runs = 0;
  bool fails = false;

 private:
  std::vector<artifact::TensorSpec> inputs_, outputs_;
  std::vector<artifact::BoundParam> bound_params_;
  std::array<DLTensor, 3> bound_{};
};

NDArray floats(Shape shape, std::vector<float> values) {
  return NDArray::from_vector<float>(std::move(shape), DataType::parse("float32"), values);
}
std::vector<float> floats_of(const Value& value) {
  const NDArray array = value.as<NDArray>().to_dense();
  return {array.data<float>(), array.data<float>() + array.num_elements()};
}

// Calls a stage for requests of one input each, with the parameter w.
struct DirectCall {
  std::vector<Value> values;
  std::vector<const Value*> inputs;
  std::vector<Value> outputs;
  std::vector<Ref<ErrorObj>> errors;
  std::vector<Source> sources{from_input(0), from_param(0)};
  Ref<ErrorObj> error;

  DirectCall(StageCode& code, std::vector<NDArray> xs, const NDArray& w, bool makes_outputs = true) {
    for (const NDArray& x : xs) values.emplace_back(x);
    const size_t count = xs.size();
    values.emplace_back(w);
    for (size_t i = 0; i < count; ++i) inputs.push_back(&values[i]);
    for (size_t i = 0; i < count; ++i) inputs.push_back(&values[count]);
    outputs.resize(count);
    for (Value& output : outputs) {
      if (makes_outputs) output = Value(floats({1, 2}, {-1, -1}));
    }
    errors.resize(count);
    error =
        code.run_batch({.count = count, .sources = sources, .inputs = inputs, .outputs = outputs, .errors = errors});
  }
};

TEST(PipelineBatchPrograms, RowsAreGatheredAndOthersAreZero) {
  const auto four = std::make_shared<ShowingExecutor>(4);
  const auto code = make_batch_executor_stage({four});
  EXPECT_EQ(code->most_in_batch(), 4);
  EXPECT_EQ(type_text(code->inputs()[0]), "float32 (1, 2)");
  EXPECT_EQ(type_text(code->inputs()[1]), "float32 (2)");
  EXPECT_EQ(type_text(code->outputs()[0]), "float32 (1, 2)");
  EXPECT_FALSE(code->is_shared(0));
  EXPECT_TRUE(code->is_shared(1));
  const NDArray w = floats({2}, {0.5F, 0.25F});
  const DirectCall full(*code, {floats({1, 2}, {1, 2}), floats({1, 2}, {3, 4}), floats({1, 2}, {5, 6})}, w);
  EXPECT_FALSE(full.error);
  EXPECT_THAT(four->seen, ElementsAre(1, 2, 3, 4, 5, 6, 0, 0));
  EXPECT_THAT(floats_of(full.outputs[0]), ElementsAre(10.5F, 20.25F));
  EXPECT_THAT(floats_of(full.outputs[2]), ElementsAre(50.5F, 60.25F));
  // Rows of an earlier call do not stay.
  const DirectCall one(*code, {floats({1, 2}, {7, 8})}, w);
  EXPECT_THAT(four->seen, ElementsAre(7, 8, 0, 0, 0, 0, 0, 0));
  EXPECT_THAT(floats_of(one.outputs[0]), ElementsAre(70.5F, 80.25F));
}

TEST(PipelineBatchPrograms, TheSmallestBatchThatFitsRuns) {
  const auto one = std::make_shared<ShowingExecutor>(1), two = std::make_shared<ShowingExecutor>(2),
             five = std::make_shared<ShowingExecutor>(5);
  const auto code = make_batch_executor_stage({five, one, two});
  EXPECT_EQ(code->most_in_batch(), 5);
  const NDArray w = floats({2}, {0, 0});
  const auto runs_of = [&](size_t count) {
    DirectCall(*code, std::vector<NDArray>(count, floats({1, 2}, {1, 2})), w);
    return std::vector<int>{one->runs, two->runs, five->runs};
  };
  EXPECT_THAT(runs_of(1), ElementsAre(1, 0, 0));
  EXPECT_THAT(runs_of(2), ElementsAre(1, 1, 0));
  EXPECT_THAT(runs_of(3), ElementsAre(1, 1, 1));
  EXPECT_THAT(runs_of(5), ElementsAre(1, 1, 2));
}

// The tensors of a batch are those of x and y.
TEST(PipelineBatchPrograms, ProgramsShareTheWeightsThatTheyHold) {
  const auto one = std::make_shared<ShowingExecutor>(1), four = std::make_shared<ShowingExecutor>(4);
  const std::vector<std::byte> shared(1000), other(64);
  one->working = 10;
  one->read_weights = {std::span(shared).first(900)};
  four->working = 40;
  four->read_weights = {shared, other};
  const int64_t of_batches = (1 + 4) * (2 + 2) * 4;
  MemoryUse memory;
  make_executor_stage(one)->add_memory(memory);
  EXPECT_EQ(memory.total_bytes(), 10 + 900);
  make_batch_executor_stage({one, four})->add_memory(memory);
  EXPECT_EQ(memory.total_bytes(), 10 + 10 + 40 + 1000 + 64 + of_batches) << "both stages read one weight";
}

TEST(PipelineBatchPrograms, ARequestThatDoesNotFitFailsAlone) {
  const auto four = std::make_shared<ShowingExecutor>(4);
  const auto code = make_batch_executor_stage({four});
  DirectCall call(*code, {floats({1, 2}, {1, 2}), floats({1, 3}, {0, 0, 0}), floats({1, 2}, {3, 4})},
                  floats({2}, {0, 0}));
  EXPECT_FALSE(call.error);
  EXPECT_FALSE(call.errors[0]);
  ASSERT_TRUE(call.errors[1]);
  EXPECT_THAT(call.errors[1]->message, HasSubstr("input 'x' has shape (1, 3)"));
  EXPECT_THAT(four->seen, ElementsAre(1, 2, 3, 4, 0, 0, 0, 0));
  EXPECT_THAT(floats_of(call.outputs[2]), ElementsAre(30, 40));
  four->fails = true;
  DirectCall failing(*code, {floats({1, 2}, {1, 2})}, floats({2}, {0, 0}));
  ASSERT_TRUE(failing.error);
  EXPECT_EQ(failing.error->message, "the kernel failed");
  EXPECT_EQ(failing.error->op, "mul");
}

// Requests with any number of rows fill batches one after another.
TEST(PipelineBatchPrograms, AnyNumberOfRows) {
  const auto one = std::make_shared<ShowingExecutor>(1), three = std::make_shared<ShowingExecutor>(3);
  const auto code = make_batch_executor_stage({one, three}, true);
  EXPECT_EQ(type_text(code->inputs()[0]), "any value");
  EXPECT_EQ(type_text(code->outputs()[0]), "any value");
  DirectCall call(*code,
                  {floats({2, 2}, {1, 2, 3, 4}), floats({0, 2}, {}),
                   floats({5, 2}, {5, 6, 7, 8, 9, 10, 11, 12, 13, 14}), floats({2}, {1, 1})},
                  floats({2}, {0, 0}), false);
  EXPECT_FALSE(call.error);
  EXPECT_THAT(floats_of(call.outputs[0]), ElementsAre(10, 20, 30, 40));
  EXPECT_EQ(call.outputs[0].as<NDArray>().shape(), (Shape{2, 2}));
  EXPECT_EQ(call.outputs[1].as<NDArray>().shape(), (Shape{0, 2}));
  EXPECT_THAT(floats_of(call.outputs[2]), ElementsAre(50, 60, 70, 80, 90, 100, 110, 120, 130, 140));
  ASSERT_TRUE(call.errors[3]);
  EXPECT_THAT(call.errors[3]->message, HasSubstr("input 'x' has"));
  EXPECT_EQ(three->runs, 2);
  EXPECT_EQ(one->runs, 1);
  EXPECT_THAT(one->seen, ElementsAre(13, 14));
}

TEST(PipelineBatchPrograms, ACallAllocatesNothing) {
  const auto code = make_batch_executor_stage({std::make_shared<ShowingExecutor>(4)});
  DirectCall call(*code, {floats({1, 2}, {1, 2}), floats({1, 2}, {3, 4})}, floats({2}, {0, 0}));
  const kit::CountAllocations counted;
  call.error = code->run_batch(
      {.count = 2, .sources = call.sources, .inputs = call.inputs, .outputs = call.outputs, .errors = call.errors});
  EXPECT_EQ(counted.count().allocations, 0);
  EXPECT_FALSE(call.error);
}

TEST(PipelineBatchPrograms, InAPipeline) {
  const auto one = std::make_shared<ShowingExecutor>(1), four = std::make_shared<ShowingExecutor>(4);
  PipelineSpec spec{.inputs = {float_port("x", {1, 2})}, .groups = {{}, {}}};
  spec.params = {{.group = "g", .port = float_port("w", {2})}};
  auto back = make_function_stage(make_packed([](NDArray x) { return x; }), {float_port("in", {1, 2})},
                                  {float_port("out", {1, 2})});
  spec.stages = {stage_of("many", make_batch_executor_stage({one, four}), {from_input(0), from_param(0)}, 0),
                 stage_of("back", std::move(back), {from_stage(0)}, 1)};
  spec.stages[0].batch = Batch{.max_batch = 4, .max_delay_seconds = 0.001};
  spec.outputs = {{.name = "y", .source = from_stage(1)}};
  Pipeline pipeline(std::move(spec));
  pipeline.set_params("g", {{"w", floats({2}, {0.5F, 0.25F})}});
  std::vector<Ticket> tickets;
  for (int i = 0; i < 203; ++i) tickets.push_back(pipeline.submit({Value(floats({1, 2}, {float(i), float(-i)}))}));
  for (int i = 0; i < 203; ++i)
    ASSERT_THAT(floats_of(tickets[static_cast<size_t>(i)].results()[0]),
                ElementsAre(float(i * 10) + 0.5F, float(-i * 10) + 0.25F));
  EXPECT_LT(pipeline.metrics().stages[0].batches, 203U);
}

// With any number of rows, a batch is full when its requests have max_batch rows together.
TEST(PipelineBatchPrograms, RowsOfRequestsFillABatch) {
  for (const bool is_source : {true, false}) {
    const auto four = std::make_shared<ShowingExecutor>(4);
    PipelineSpec spec{.inputs = {any_port("x")}, .groups = {{}}};
    spec.params = {{.group = "g", .port = float_port("w", {2})}};
    spec.stages = {stage_of("many", make_batch_executor_stage({four}, true), {from_input(0), from_param(0)}, 0)};
    spec.stages[0].batch = Batch{.max_batch = 4, .max_delay_seconds = 1000, .any_rows = true};
    spec.outputs = {{.name = "y", .source = from_stage(0)}};
    if (!is_source) {
      spec.stages.push_back(stage_of(
          "first", make_function_stage(make_packed([](Value x) { return x; }), {any_port("x")}, {any_port("y")}),
          {from_input(0)}, 1));
      spec.stages[0].inputs[0] = from_stage(1);
      spec.groups.emplace_back();
    }
    Pipeline pipeline(std::move(spec));
    pipeline.set_params("g", {{"w", floats({2}, {0, 0})}});
    const Ticket one = pipeline.submit({Value(floats({1, 2}, {1, 2}))});
    const Ticket none = pipeline.submit({Value(floats({0, 2}, {}))});
    EXPECT_FALSE(one.wait(after(20ms)));
    const Ticket three = pipeline.submit({Value(floats({3, 2}, {3, 4, 5, 6, 7, 8}))});
    EXPECT_THAT(floats_of(one.results()[0]), ElementsAre(10, 20));
    EXPECT_THAT(floats_of(none.results()[0]), ElementsAre());
    EXPECT_THAT(floats_of(three.results()[0]), ElementsAre(30, 40, 50, 60, 70, 80));
    EXPECT_EQ(four->runs, 1);
    const Ticket many = pipeline.submit({Value(floats({6, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}))});
    EXPECT_THAT(floats_of(many.results()[0]), ElementsAre(10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 120));
    EXPECT_EQ(four->runs, 3);
  }
}

TEST(PipelineBatchPrograms, PortsThatAreRefused) {
  using Specs = std::vector<artifact::TensorSpec>;
  const auto refusal = [](std::vector<BatchProgram> programs) {
    return message_thrown([&] { (void)batch_ports(programs, false); });
  };
  const BatchProgram two{.inputs = Specs{float_spec("x", {2, 3})}, .outputs = Specs{float_spec("y", {2, 5})}};
  EXPECT_EQ(refusal({two}), "");
  EXPECT_EQ(refusal({}), "a stage that works on batches needs a program");
  EXPECT_EQ(refusal({{.inputs = two.inputs, .outputs = {}}}), "a program without outputs has no batch");
  EXPECT_THAT(refusal({{.inputs = two.inputs, .outputs = {two.outputs[0], float_spec("z", {3})}}}),
              HasSubstr("output 'z' is float32 (3); all outputs of a program that works on batches have the batch as "
                        "their first dimension, which is that of output 'y', float32 (2, 5)"));
  EXPECT_THAT(refusal({{.inputs = two.inputs, .outputs = {float_spec("y", {})}}}),
              HasSubstr("output 'y' is float32 ()"));
  EXPECT_EQ(refusal({{.inputs = {float_spec("x", {3, 2})}, .outputs = two.outputs}}),
            "no input of the program has its batch, 2, as first dimension");
  EXPECT_EQ(refusal({two, two}), "two programs of the stage have the batch 2");
  EXPECT_THAT(refusal({two, {.inputs = {float_spec("x", {4, 9})}, .outputs = {float_spec("y", {4, 5})}}}),
              HasSubstr("input 'x' is float32 (2, 3) in one program and 'x', float32 (4, 9), in another"));
  EXPECT_THAT(refusal({two, {.inputs = {float_spec("x", {5, 3})}, .outputs = {float_spec("y", {4, 5})}}}),
              HasSubstr("input 'x' is float32 (2, 3) in one program and 'x', float32 (5, 3), in another"));
  EXPECT_THAT(refusal({two, {.inputs = {}, .outputs = {float_spec("y", {4, 5})}}}),
              HasSubstr("one program of the stage has 1 inputs, and another 0"));
}

TEST(PipelineBatchPrograms, SharedTensorsAreParameters) {
  PipelineSpec spec{.inputs = {float_port("x", {1, 2}), float_port("w", {2})}, .groups = {{}}};
  spec.stages = {stage_of("many", make_batch_executor_stage({std::make_shared<ShowingExecutor>(4)}),
                          {from_input(0), from_input(1)}, 0)};
  spec.stages[0].batch = Batch{.max_batch = 4};
  spec.outputs = {{.name = "y", .source = from_stage(0)}};
  EXPECT_THAT(
      message_thrown([&] { check_spec(spec); }),
      HasSubstr("input 'w' of stage 'many' has no batch as its first dimension, so all requests of a batch share "
                "it: connect it to a parameter, not to input 'w' of the pipeline"));
  spec.stages[0].batch->max_batch = 5;
  EXPECT_EQ(message_thrown([&] { check_spec(spec); }),
            "max_batch of stage 'many' is 5, and the largest batch of its programs is 4");
  spec.stages[0].batch.reset();
  EXPECT_EQ(message_thrown([&] { check_spec(spec); }),
            "the code of stage 'many' takes several requests in one call; give the stage a batch");
}

}  // namespace
}  // namespace headrace::executors::pipeline
