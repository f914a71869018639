#include "executors/graph/graph_executor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>

#include "executors/graph/graph_module.h"
#include "kit/artifact_kit.h"
#include "kit/count_allocations.h"
#include "kit/errors.h"
#include "load/external_call.h"
#include "runtime/library.h"
#include "tensor/ndarray.h"

namespace headrace::executors {
namespace {

using headrace::testing::TensorView;
using headrace::testing::toy_expected;
using headrace::testing::toy_input;
using ::testing::HasSubstr;

// The toy artifact with an executor of its program; `edit` changes the manifest first.
struct Toy {
  explicit Toy(int32_t threads, const std::function<void(artifact::Manifest&)>& edit = {})
      : Toy(threads, [&] {
          artifact::Manifest manifest = headrace::testing::toy_manifest();
          if (edit) edit(manifest);
          return manifest;
        }()) {}
  Toy(int32_t threads, const artifact::Manifest& manifest) : file(headrace::testing::make_artifact(manifest)) {
    library = runtime::Library::open(file.path()).value_or_throw();
    for (const artifact::Step& step : program().graph.steps)
      callees.push_back(
          {.kernel = reinterpret_cast<hr_kernel>(library->symbol(artifact::callee_of(step.action))), .external = {}});
    for (size_t i = 0; i < 2; ++i) weights.push_back(library->weight(i));
    executor = std::make_shared<GraphExecutor>(parts(), runtime::shared_pool(threads));
  }
  const artifact::Program& program() const { return library->manifest().programs[0]; }
  GraphParts parts() const { return {program(), callees, weights}; }

  headrace::testing::TempFile file;
  std::shared_ptr<const runtime::Library> library;
  std::vector<Callee> callees;
  std::vector<const std::byte*> weights;
  std::shared_ptr<GraphExecutor> executor;
};

std::vector<float> floats(const DLTensor& tensor, size_t count) {
  const auto* data = static_cast<const float*>(tensor.data);
  return {data, data + count};
}

TEST(GraphExecutor, RunAllocatesNothing) {
  Toy toy(2);
  std::vector<float> x = toy_input();
  const TensorView view(x.data(), {6, 8});
  throw_if_failed(toy.executor->set_input(0, view.tensor));
  ASSERT_EQ(toy.executor->run().code, 0);
  const kit::CountAllocations counter;
  const auto allocations_of_runs = [&] {
    const int64_t before = counter.count().allocations;
    for (int i = 0; i < 100; ++i) {
      throw_if_failed(toy.executor->set_input(0, view.tensor));
      throw_if_failed(toy.executor->bind_input(0, view.tensor));
      if (toy.executor->run().code != 0) ADD_FAILURE() << "the run failed";
    }
    return counter.count().allocations - before;
  };
  // A worker that wakes late takes its first part in one of these runs, and makes what belongs to its thread.
  int64_t during_runs = allocations_of_runs();
  for (int again = 0; again < 3 && during_runs > 0; ++again) during_runs = allocations_of_runs();
  // The counter counts.
  const int64_t before = counter.count().allocations;
  const auto something = std::make_unique<std::vector<int>>(1000);
  EXPECT_GT(counter.count().allocations, before);
  EXPECT_EQ(during_runs, 0);
}

// Passes all on to a graph executor, and counts how often memory is given to it.
class CountedBinds final : public Executor {
 public:
  CountedBinds(const GraphParts& parts, int& binds) : executor_(parts, runtime::shared_pool(1)), binds_(binds) {}
  const std::vector<artifact::TensorSpec>& inputs() const override { return executor_.inputs(); }
  const std::vector<artifact::TensorSpec>& outputs() const override { return executor_.outputs(); }
  const std::vector<artifact::BoundParam>& bound_params() const override { return executor_.bound_params(); }
  int32_t num_threads() const override { return executor_.num_threads(); }
  size_t num_steps() const override { return executor_.num_steps(); }
  Metrics metrics() const override { return executor_.metrics(); }
  std::vector<FallbackEvent> fallbacks() const override { return executor_.fallbacks(); }
  Status set_input(size_t index, const DLTensor& tensor) noexcept override {
    return executor_.set_input(index, tensor);
  }
  Status bind_input(size_t index, const DLTensor& tensor) noexcept override {
    ++binds_;
    return executor_.bind_input(index, tensor);
  }
  Status give_input(size_t index, const DLTensor& tensor) noexcept override {
    ++binds_;
    return executor_.give_input(index, tensor);
  }
  Status bind_output(size_t index, const DLTensor& tensor) noexcept override {
    ++binds_;
    return executor_.bind_output(index, tensor);
  }
  Status run(std::span<uint64_t> step_nanoseconds) noexcept override { return executor_.run(step_nanoseconds); }
  const DLTensor& input(size_t index) const override { return executor_.input(index); }
  const DLTensor& output(size_t index) const override { return executor_.output(index); }
  bool has_output(size_t index) const override { return executor_.has_output(index); }

 private:
  GraphExecutor executor_;
  int& binds_;
};

// The toy program with other callees: its first step is a region, which a native form can stand in for, and its second
// is an external function of 40 tensors that adds the first two.
struct ToyRegion {
  explicit ToyRegion(int32_t threads) : toy(threads), program(toy.program()) {
    program.graph.steps[0].action = artifact::RegionCall{"part"};
    program.graph.steps[1].action = artifact::ExternalCall{"add"};
    program.graph.steps[1].args = std::vector<int32_t>(39, 4);
    program.graph.steps[1].args.push_back(5);
    native_program.inputs = {headrace::testing::spec("x", {6, 8}), headrace::testing::spec("w", {5, 8}),
                             headrace::testing::spec("b", {5})};
    native_program.outputs = {headrace::testing::spec("y", {6, 5})};
    native_program.memory.workspace_bytes = 64;
    const auto entry = [](artifact::Place place, int64_t index, std::vector<int64_t> shape) {
      return headrace::testing::entry(place, index, std::move(shape));
    };
    native_program.graph.entries = {entry(artifact::Place::kInput, 0, {6, 8}),
                                    entry(artifact::Place::kInput, 1, {5, 8}), entry(artifact::Place::kInput, 2, {5}),
                                    entry(artifact::Place::kOutput, 0, {6, 5})};
    native_program.graph.steps = {headrace::testing::step(artifact::KernelCall{"toy_dense_relu"}, {0, 1, 2, 3}, "fc1")};
    native_callees = {{.kernel = toy.callees[0].kernel}};
    native = {.backend = "toy", .make = [this] {
                return std::make_shared<CountedBinds>(GraphParts{native_program, native_callees, {}}, native_binds);
              }};
    add->safe_call = [](void*, const RawValue* args, int32_t n, RawValue*) {
      const auto data = [&](int32_t i) {
        const auto* tensor = static_cast<const DLTensor*>(args[i].v.v_ptr);
        return static_cast<float*>(tensor->data) + tensor->byte_offset / sizeof(float);
      };
      for (size_t i = 0; i < 30; ++i) data(n - 1)[i] = data(0)[i] + data(1)[i];
      return n == 40 ? 0 : -1;
    };
    added = PackedFunc(add);
    toy.callees[1] = {.kernel = nullptr, .external = load::external_call(added)};
  }
  std::shared_ptr<GraphExecutor> make(int32_t threads, double timeout = 0) const {
    return std::make_shared<GraphExecutor>(GraphParts{program, toy.callees, toy.weights, timeout},
                                           std::make_shared<runtime::ThreadPool>(threads));
  }

  Toy toy;
  artifact::Program program, native_program;
  std::vector<Callee> native_callees;
  NativeForm native;
  int native_binds = 0;
  Ref<FunctionObj> add = make_object<FunctionObj>();
  PackedFunc added;
};

// Binds the input and both outputs to memory of its own, runs and compares.
struct BoundRun {
  explicit BoundRun(Executor& executor) : executor(executor) {
    throw_if_failed(executor.bind_input(0, input.tensor));
    throw_if_failed(executor.bind_output(0, output.tensor));
    throw_if_failed(executor.bind_output(1, same.tensor));
  }
  void run() {
    std::fill(y.begin(), y.end(), -1.0F);
    if (executor.run().code != 0) ADD_FAILURE() << "the run failed";
    if (y != expected) ADD_FAILURE() << "the output is wrong";
  }

  Executor& executor;
  std::vector<float> x = toy_input(), y = std::vector<float>(30), copy = std::vector<float>(48);
  const std::vector<float> expected = toy_expected(x);
  TensorView input{x.data(), {6, 8}}, output{y.data(), {30}}, same{copy.data(), {6, 8}};
};

int64_t allocations_of_bound_runs(Executor& executor) {
  BoundRun bound(executor);
  bound.run();
  const kit::CountAllocations counter;
  int64_t during_runs = 1;
  // A worker that wakes late takes its first part in one of these runs, and makes what belongs to its thread.
  for (int attempt = 0; attempt < 4 && during_runs > 0; ++attempt) {
    const int64_t before = counter.count().allocations;
    for (int i = 0; i < 50; ++i) bound.run();
    during_runs = counter.count().allocations - before;
  }
  return during_runs;
}

TEST(GraphExecutor, BoundRunsOfEveryKindOfStepAllocateNothing) {
  for (const int32_t threads : {1, 3}) {
    ToyRegion of(threads);
    EXPECT_EQ(allocations_of_bound_runs(*of.make(threads)), 0) << "a region of a kernel";
    EXPECT_EQ(allocations_of_bound_runs(*of.make(threads, 60)), 0) << "a region with a time limit";
    of.toy.callees[0].native = &of.native;
    of.toy.callees[0].kernel = [](const hr_kernel_env*, DLTensor* const*) { return 9; };
    const auto fallen = of.make(threads);
    EXPECT_EQ(allocations_of_bound_runs(*fallen), 0) << "a region that has fallen back";
    EXPECT_EQ(fallen->metrics().fallbacks, 1u);
    EXPECT_EQ(of.native_binds, 4) << "it is bound once";
  }
}

TEST(GraphExecutor, ANativeFormFollowsTheMemoryOfPorts) {
  ToyRegion of(1);
  of.native.missing = Refusal{HR_REASON_BACKEND_MISSING, "there is no toy"};
  of.toy.callees[0].native = &of.native;
  const auto executor = of.make(1);
  EXPECT_EQ(executor->metrics().fallbacks, 1u);
  BoundRun first(*executor);
  first.run();
  first.run();
  EXPECT_EQ(of.native_binds, 4);
  BoundRun second(*executor);
  for (float& value : first.x) value = 100;
  second.run();
  second.run();
  EXPECT_EQ(of.native_binds, 8);
  EXPECT_EQ(first.y, first.expected) << "memory of before is left alone";
}

TEST(GraphExecutor, ANativeFormThatCannotBeMadeIsSaidBesideTheFailure) {
  ToyRegion of(1);
  of.native.make = []() -> std::shared_ptr<Executor> { throw UserError("there is no room for it"); };
  of.toy.callees[0].native = &of.native;
  of.toy.callees[0].backend = "toy";
  of.toy.callees[0].kernel = [](const hr_kernel_env*, DLTensor* const*) { return 9; };
  const auto executor = of.make(1);
  std::vector<float> x = toy_input();
  throw_if_failed(executor->set_input(0, TensorView(x.data(), {6, 8}).tensor));
  const Status status = executor->run();
  EXPECT_EQ(status.code, 9);
  EXPECT_EQ(status.reason, HR_REASON_BACKEND_FAILED);
  EXPECT_EQ(status.message,
            "the backend 'toy' failed in the region 'part': it does not say why; and the region's native form cannot "
            "be made: there is no room for it");
  EXPECT_EQ(executor->metrics().fallbacks, 0u);
}

// Counts the runs that have reached the kernel `meet`, which returns when both have.
std::atomic<int> arrived = 0;

int32_t meet(const hr_kernel_env*, DLTensor* const*) {
  arrived.fetch_add(1);
  for (int i = 0; i < 10'000 && arrived.load() < 2; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return arrived.load() < 2 ? 1 : 0;
}

TEST(GraphExecutor, ExecutorsWithPoolsOfTheirOwnRunAtTheSameTime) {
  arrived = 0;
  Toy toy(1);
  toy.callees[0].kernel = &meet;
  std::vector<float> x = toy_input();
  std::array<int32_t, 2> codes = {-1, -1};
  std::vector<std::thread> threads;
  for (int32_t& code : codes) {
    threads.emplace_back([&] {
      GraphExecutor executor(toy.parts(), std::make_shared<runtime::ThreadPool>(1));
      std::vector<float> mine = x;
      throw_if_failed(executor.set_input(0, TensorView(mine.data(), {6, 8}).tensor));
      code = executor.run().code;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(codes, ::testing::Each(0));
}

TEST(GraphExecutor, CountsItsRuns) {
  Toy toy(1);
  EXPECT_NE(toy.executor->run().code, 0);  // no input
  std::vector<float> x = toy_input();
  throw_if_failed(toy.executor->set_input(0, TensorView(x.data(), {6, 8}).tensor));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(toy.executor->run().code, 0);
  EXPECT_EQ(toy.executor->metrics().runs, 4u);
  EXPECT_EQ(toy.executor->metrics().failures, 1u);
}

// The arena, the workspace of each worker, and two weights.
TEST(GraphExecutor, TellsItsMemory) {
  const Toy toy(2);
  MemoryUse memory;
  toy.executor->add_memory(memory);
  EXPECT_EQ(memory.working_bytes, 128 + 2 * 64);
  EXPECT_EQ(memory.total_bytes(), 128 + 2 * 64 + 160 + 20);
  toy.executor->add_memory(memory);
  EXPECT_EQ(memory.total_bytes(), 2 * (128 + 2 * 64) + 160 + 20) << "weights are shared";
}

TEST(GraphExecutor, RunTellsHowLongEachStepTook) {
  Toy toy(1);
  std::vector<float> x = toy_input();
  const TensorView view(x.data(), {6, 8});
  throw_if_failed(toy.executor->set_input(0, view.tensor));
  std::vector<uint64_t> nanoseconds(toy.executor->num_steps(), 0);
  ASSERT_EQ(toy.executor->run(nanoseconds).code, 0);
  EXPECT_THAT(nanoseconds, ::testing::Each(::testing::Gt(0)));
}

TEST(GraphExecutor, ZeroCopyReadsAndWritesTheCallersMemory) {
  Toy toy(1);
  std::vector<float> x = toy_input();
  std::vector<float> y(30, -1);
  throw_if_failed(toy.executor->bind_input(0, TensorView(x.data(), {6, 8}).tensor));
  throw_if_failed(toy.executor->bind_output(0, TensorView(y.data(), {30}).tensor));
  ASSERT_EQ(toy.executor->run().code, 0);
  EXPECT_EQ(y, toy_expected(x));
  EXPECT_EQ(toy.executor->output(0).data, y.data());
  x[3] += 1;
  ASSERT_EQ(toy.executor->run().code, 0);
  EXPECT_EQ(y, toy_expected(x));
  EXPECT_EQ(floats(toy.executor->output(1), 48), x);
  // A copy goes back to the executor's own memory.
  const std::vector<float> zero(48);
  throw_if_failed(toy.executor->set_input(0, TensorView(const_cast<float*>(zero.data()), {6, 8}).tensor));
  ASSERT_EQ(toy.executor->run().code, 0);
  EXPECT_EQ(y, toy_expected(zero));
  EXPECT_NE(x, zero);
}

// The output "same" has as many indices of `axis` as the input "n" says.
std::function<void(artifact::Manifest&)> bounded_by_n(int64_t axis) {
  return [axis](artifact::Manifest& manifest) {
    artifact::Program& program = manifest.programs[0];
    program.inputs.push_back({.name = "n", .dtype = DataType::int_(64), .shape = {1}});
    program.graph.entries.push_back(
        {.place = artifact::Place::kInput, .index = 1, .dtype = DataType::int_(64), .shape = {1}, .strides = {}});
    program.bounded_outputs = {{.output = 1, .axis = axis, .extent = 7}};
  };
}

TEST(GraphExecutor, ABoundedOutputIsDenseInItsActualShape) {
  const std::vector<float> x = toy_input();
  const auto input = NDArray::from_vector({6, 8}, DataType::float_(32), x);
  for (const int64_t axis : {0, 1}) {
    Toy toy(1, bounded_by_n(axis));
    const runtime::Module module = make_graph_module(toy.executor);
    throw_if_failed(toy.executor->set_input(0, input.tensor()));
    EXPECT_EQ(toy.executor->output(1).shape[0], 6);
    EXPECT_EQ(toy.executor->output(1).shape[1], 8);
    for (const int64_t n : {3, 0, 6, 1}) {
      throw_if_failed(
          toy.executor->set_input(1, NDArray::from_vector({1}, DataType::int_(64), std::vector<int64_t>{n}).tensor()));
      ASSERT_EQ(toy.executor->run().code, 0);
      const auto out = module.GetFunction("get_output")(1).as<NDArray>();
      ASSERT_EQ(out.shape(), axis == 0 ? (Shape{n, 8}) : (Shape{6, n}));
      const auto width = static_cast<size_t>(out.shape()[1]);
      for (size_t i = 0; i < static_cast<size_t>(out.num_elements()); ++i)
        EXPECT_EQ(out.data<float>()[i], x[i / width * 8 + i % width]) << "axis " << axis << " element " << i;
      EXPECT_EQ(floats(toy.executor->output(0), 30), toy_expected(x));
      const NDArray copy = NDArray::zeros(out.shape(), DataType::float_(32));
      module.GetFunction("get_output")(1, copy);
      EXPECT_TRUE(copy.content_equal(out));
      const NDArray large = NDArray::zeros({6, 9}, DataType::float_(32));
      EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("get_output")(1, large); }),
                  HasSubstr("has shape (6, 9)"));
    }
  }
}

TEST(GraphExecutor, AnExtentPastItsBoundFailsTheRun) {
  const auto input = NDArray::from_vector({6, 8}, DataType::float_(32), toy_input());
  Toy toy(1, bounded_by_n(1));
  throw_if_failed(toy.executor->set_input(0, input.tensor()));
  for (const int64_t n : {int64_t{9}, int64_t{-1}, INT64_MAX}) {
    throw_if_failed(
        toy.executor->set_input(1, NDArray::from_vector({1}, DataType::int_(64), std::vector<int64_t>{n}).tensor()));
    const Status status = toy.executor->run();
    EXPECT_EQ(status.reason, HR_REASON_KERNEL_FAILED);
    EXPECT_EQ(status.op, "same");
    EXPECT_EQ(status.message, "the output's extent is not within its bound");
  }
}

TEST(GraphExecutor, OutputsHaveMemoryOfTheirOwn) {
  Toy toy(1);
  std::vector<float> memory = toy_input(), second(60);
  memory.resize(96);
  const std::vector<float> x(memory.begin(), memory.begin() + 48);
  throw_if_failed(toy.executor->bind_input(0, TensorView(memory.data(), {6, 8}).tensor));
  // The last element of the input is the first of the output.
  throw_if_failed(toy.executor->bind_output(0, TensorView(memory.data() + 47, {30}).tensor));
  const Status status = toy.executor->run();
  EXPECT_EQ(status.reason, HR_REASON_BAD_TENSOR);
  EXPECT_EQ(status.op, toy.executor->outputs()[0].name);
  EXPECT_THAT(std::string(status.message), HasSubstr("shares memory with an input or another output"));
  EXPECT_EQ(toy.executor->run().reason, HR_REASON_BAD_TENSOR);
  throw_if_failed(toy.executor->bind_output(0, TensorView(memory.data() + 48, {30}).tensor));
  EXPECT_EQ(toy.executor->run().code, 0);
  EXPECT_TRUE(std::equal(memory.begin() + 48, memory.begin() + 78, toy_expected(x).begin()));
  // Two outputs in one place.
  throw_if_failed(toy.executor->bind_output(1, TensorView(second.data(), {6, 8}).tensor));
  EXPECT_EQ(toy.executor->run().code, 0);
  throw_if_failed(toy.executor->bind_output(0, TensorView(second.data() + 30, {30}).tensor));
  EXPECT_EQ(toy.executor->run().reason, HR_REASON_BAD_TENSOR);
}

TEST(GraphExecutor, StridedInputsAreCopied) {
  Toy toy(1);
  const std::vector<float> x = toy_input();
  std::vector<float> transposed(48);
  for (size_t i = 0; i < 6; ++i) {
    for (size_t k = 0; k < 8; ++k) transposed[k * 6 + i] = x[i * 8 + k];
  }
  TensorView view(transposed.data(), {6, 8});
  std::vector<int64_t> strides = {1, 6};
  view.tensor.strides = strides.data();
  throw_if_failed(toy.executor->set_input(0, view.tensor));
  ASSERT_EQ(toy.executor->run().code, 0);
  EXPECT_EQ(floats(toy.executor->output(0), 30), toy_expected(x));
  EXPECT_THAT(kit::user_error_of([&] { throw_if_failed(toy.executor->bind_input(0, view.tensor)); }),
              HasSubstr("input 'x' is not contiguous"));
  // Backwards, from the last element.
  std::vector<float> reversed(x.rbegin(), x.rend());
  TensorView backwards(reversed.data(), {6, 8});
  strides = {-8, -1};
  backwards.tensor.strides = strides.data();
  backwards.tensor.byte_offset = 47 * sizeof(float);
  throw_if_failed(toy.executor->set_input(0, backwards.tensor));
  ASSERT_EQ(toy.executor->run().code, 0);
  EXPECT_EQ(floats(toy.executor->output(0), 30), toy_expected(x));
}

// A tensor that is given is read where it lies if it is contiguous and aligned, and copied otherwise.
TEST(GraphExecutor, AGivenInputIsReadInPlaceOrCopied) {
  Toy toy(1);
  std::vector<float> x = toy_input(), transposed(48);
  TensorView own(x.data(), {6, 8});
  throw_if_failed(toy.executor->give_input(0, own.tensor));
  EXPECT_EQ(toy.executor->input(0).data, x.data());
  for (size_t i = 0; i < 6; ++i) {
    for (size_t k = 0; k < 8; ++k) transposed[k * 6 + i] = x[i * 8 + k];
  }
  TensorView view(transposed.data(), {6, 8});
  std::vector<int64_t> strides = {1, 6};
  view.tensor.strides = strides.data();
  std::vector<std::byte> bytes(48 * sizeof(float) + 2);
  std::memcpy(bytes.data() + 2, x.data(), 48 * sizeof(float));
  TensorView unaligned(reinterpret_cast<float*>(bytes.data()), {6, 8});
  unaligned.tensor.byte_offset = 2;
  for (const DLTensor& tensor : {view.tensor, unaligned.tensor}) {
    std::fill(x.begin(), x.end(), 0.0F);  // the tensor given before is not read again
    throw_if_failed(toy.executor->give_input(0, tensor));
    EXPECT_NE(toy.executor->input(0).data, tensor.data);
    ASSERT_EQ(toy.executor->run().code, 0);
    EXPECT_EQ(floats(toy.executor->output(0), 30), toy_expected(toy_input()));
  }
  EXPECT_THAT(
      kit::user_error_of([&] { throw_if_failed(toy.executor->give_input(0, TensorView(x.data(), {48}).tensor)); }),
      HasSubstr("input 'x' has 1 dimensions"));
}

TEST(GraphExecutor, WrongTensorsAreNamed) {
  Toy toy(1);
  std::vector<float> x(100);
  const auto set = [&](const DLTensor& tensor) {
    return kit::user_error_of([&] { throw_if_failed(toy.executor->set_input(0, tensor)); });
  };
  EXPECT_EQ(set(TensorView(x.data(), {8, 6}).tensor), "input 'x' has shape (8, 6), the program takes (6, 8)\n  at: x");
  EXPECT_EQ(set(TensorView(x.data(), {48}).tensor), "input 'x' has 1 dimensions, the program takes (6, 8)\n  at: x");
  EXPECT_EQ(set(TensorView(nullptr, {6, 8}).tensor), "input 'x' has no memory (data is NULL)\n  at: x");
  TensorView wrong(x.data(), {6, 8});
  wrong.tensor.dtype = {kDLFloat, 64, 1};
  EXPECT_EQ(set(wrong.tensor), "input 'x' has dtype float64, the program takes float32\n  at: x");
  TensorView device(x.data(), {6, 8});
  device.tensor.device = {kDLCUDA, 0};
  EXPECT_THAT(set(device.tensor), HasSubstr("input 'x' is on the device cuda(0)"));
  TensorView unaligned(x.data(), {6, 8});
  unaligned.tensor.byte_offset = 2;
  EXPECT_THAT(kit::user_error_of([&] { throw_if_failed(toy.executor->bind_input(0, unaligned.tensor)); }),
              HasSubstr("not aligned to its element of 4 bytes"));
  EXPECT_THAT(kit::user_error_of([&] { throw_if_failed(toy.executor->set_input(1, unaligned.tensor)); }),
              HasSubstr("there is no input 1"));
  EXPECT_THAT(kit::user_error_of([&] { throw_if_failed(toy.executor->bind_output(2, unaligned.tensor)); }),
              HasSubstr("there is no output 2: the program has 2"));
}

TEST(GraphExecutor, AMissingInputIsNamed) {
  Toy toy(1);
  const Status status = toy.executor->run();
  EXPECT_EQ(status.reason, HR_REASON_INPUT_MISSING);
  EXPECT_EQ(status.op, "x");
}

TEST(GraphExecutor, AFailingKernelIsNamed) {
  for (int32_t threads : {1, 3}) {
    Toy toy(threads, [](artifact::Manifest& manifest) {
      manifest.programs[0].graph.steps[1].action = artifact::KernelCall{"toy_fail"};
    });
    std::vector<float> x = toy_input();
    throw_if_failed(toy.executor->set_input(0, TensorView(x.data(), {6, 8}).tensor));
    for (int i = 0; i < 2; ++i) {
      const Status status = toy.executor->run();
      EXPECT_EQ(status.code, 7);
      EXPECT_EQ(status.reason, HR_REASON_KERNEL_FAILED);
      EXPECT_EQ(status.op, "double");
      EXPECT_EQ(status.message, "row 4 is out of bounds");
    }
  }
}

TEST(GraphModule, HasTheFunctionsRelayUsersKnow) {
  Toy toy(2);
  const runtime::Module module = make_graph_module(toy.executor);
  const std::vector<float> x = toy_input();
  const NDArray input = NDArray::from_vector({6, 8}, DataType::float_(32), x);
  module.GetFunction("set_input")("x", input);
  module.GetFunction("run")();
  const NDArray y = module.GetFunction("get_output")(0).as<NDArray>();
  EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + 30), toy_expected(x));
  const NDArray copy = NDArray::zeros({30}, DataType::float_(32));
  module.GetFunction("get_output")(0, copy);
  EXPECT_TRUE(copy.content_equal(y));
  EXPECT_EQ(module.GetFunction("get_num_inputs")().as<int64_t>(), 1);
  EXPECT_EQ(module.GetFunction("get_num_outputs")().as<int64_t>(), 2);
  EXPECT_EQ(module.GetFunction("get_input_index")("x").as<int64_t>(), 0);
  EXPECT_EQ(module.GetFunction("get_input_index")("z").as<int64_t>(), -1);
  const auto info = module.GetFunction("get_output_info")().as<Map<std::string, Value>>();
  const auto shapes = info.at("shape").as<Map<std::string, Shape>>();
  EXPECT_EQ(shapes.at("same"), (Shape{6, 8}));
  const auto dtypes = info.at("dtype").as<Map<std::string, std::string>>();
  EXPECT_EQ(dtypes.at("y"), "float32");
  EXPECT_FALSE(module.GetFunction("fly"));
  EXPECT_EQ(module.type_key(), "graph_executor");
}

TEST(GraphModule, KeepsTensorsAlive) {
  Toy toy(1);
  std::vector<float> x = toy_input();
  bool is_released = false;
  runtime::Module module = make_graph_module(toy.executor);
  module.GetFunction("set_input_zero_copy")(
      0, NDArray::view(x.data(), {6, 8}, DataType::float_(32), [&] { is_released = true; }));
  EXPECT_FALSE(is_released);
  module.GetFunction("run")();
  const NDArray y = module.GetFunction("get_output")(0).as<NDArray>();
  module.GetFunction("set_input")(0, NDArray::zeros({6, 8}, DataType::float_(32)));
  EXPECT_TRUE(is_released);
  module = runtime::Module();
  toy.executor.reset();
  // The view still holds the executor's memory.
  EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + 30), toy_expected(x));
}

TEST(GraphModule, Errors) {
  Toy toy(1);
  const runtime::Module module = make_graph_module(toy.executor);
  const NDArray wrong = NDArray::zeros({2}, DataType::float_(32));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("set_input")("z", wrong); }),
              HasSubstr("there is no input 'z'; the inputs are x"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("set_input")(5, wrong); }), HasSubstr("there is no input 5"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("set_input")("x"); }), HasSubstr("argument 1 is missing"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("set_input")("x", Value()); }), HasSubstr("argument 1"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("set_input")("x", wrong); }), HasSubstr("dimensions"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("get_output")(2); }), HasSubstr("there is no output 2"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("get_output")(0, wrong); }),
              HasSubstr("output 'y' has shape (2)"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("run")(); }), HasSubstr("the input was never set"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("get_output")(0); }),
              HasSubstr("output 'y' was not computed yet; call run first"));
  EXPECT_THAT(kit::user_error_of([&] { module.GetFunction("get_output")(0, NDArray::zeros({30}, wrong.dtype())); }),
              HasSubstr("output 'y' was not computed yet; call run first"));
}

}  // namespace
}  // namespace headrace::executors
