// The parts of parallel loops as an executor records them.
#include "executors/part_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include "executors/graph/graph_executor.h"
#include "kit/artifact_kit.h"
#include "runtime/library.h"

namespace headrace::executors {
namespace {

using ::testing::SizeIs;

// The toy artifact; a test puts its own kernel in place of the first step's.
struct ToyProgram {
  explicit ToyProgram(hr_kernel first) {
    for (const artifact::Step& step : program().graph.steps)
      callees.push_back({.kernel = kernel(artifact::callee_of(step.action)), .external = {}});
    for (size_t i = 0; i < 2; ++i) weights.push_back(library->weight(i));
    callees[0].kernel = first;
  }
  hr_kernel kernel(const std::string& name) const { return reinterpret_cast<hr_kernel>(library->symbol(name)); }
  const artifact::Program& program() const { return library->manifest().programs[0]; }
  std::shared_ptr<GraphExecutor> executor(int32_t threads) const {
    auto made = std::make_shared<GraphExecutor>(GraphParts{program(), callees, weights},
                                                std::make_shared<runtime::ThreadPool>(threads));
    std::vector<float> x = headrace::testing::toy_input();
    throw_if_failed(made->set_input(0, headrace::testing::TensorView(x.data(), {6, 8}).tensor));
    return made;
  }

  headrace::testing::TempFile file{headrace::testing::make_artifact(headrace::testing::toy_manifest())};
  std::shared_ptr<const runtime::Library> library = runtime::Library::open(file.path()).value_or_throw();
  std::vector<Callee> callees;
  std::vector<const std::byte*> weights;
};

int32_t nothing(const hr_kernel_env*, void*, int64_t, int64_t) { return 0; }

// Returns once as many parts as there are workers have begun, so that each must have a thread of its own. Runs a loop
// inside of each part.
int32_t meet(const hr_kernel_env* env, void* arrived, int64_t, int64_t) {
  auto& count = *static_cast<std::atomic<int32_t>*>(arrived);
  ++count;
  while (count < env->num_workers) std::this_thread::yield();
  return env->parallel_for(env, nothing, nullptr, 4);
}

int32_t meet_once(const hr_kernel_env* env, DLTensor* const*) {
  std::atomic<int32_t> arrived = 0;
  return env->parallel_for(env, meet, &arrived, env->num_workers);
}

TEST(PartTimes, EachThreadHasItsParts) {
  const ToyProgram toy(meet_once);
  const auto executor = toy.executor(3);
  PartTimes recorder(executor->num_threads());
  executor->record_parts(&recorder);
  std::vector<uint64_t> steps(executor->num_steps());
  throw_if_failed(executor->run(steps));
  const std::vector<PartTime> parts = recorder.parts();
  ASSERT_THAT(parts, SizeIs(3)) << "loops inside of parts, and steps without loops, add none";
  std::vector<int32_t> threads;
  for (const PartTime& part : parts) {
    EXPECT_EQ(part.step, 0u);
    // Each part ended after all had begun, and within its step.
    EXPECT_GE(part.end, parts.back().begin);
    EXPECT_LE(part.end, steps[0]);
    threads.push_back(part.thread);
  }
  EXPECT_THAT(threads, ::testing::UnorderedElementsAre(0, 1, 2));
  EXPECT_EQ(recorder.num_lost(), 0u);
}

int32_t loop_alone(const hr_kernel_env* env, DLTensor* const*) { return env->parallel_for(env, nothing, nullptr, 1); }

TEST(PartTimes, OnlyTimedRunsAreRecorded) {
  const ToyProgram toy(loop_alone);
  const auto executor = toy.executor(2);
  PartTimes recorder(executor->num_threads());
  executor->record_parts(&recorder);
  throw_if_failed(executor->run());
  EXPECT_THAT(recorder.parts(), SizeIs(0));
  std::vector<uint64_t> steps(executor->num_steps());
  throw_if_failed(executor->run(steps));
  throw_if_failed(executor->run(steps));
  throw_if_failed(executor->run());
  EXPECT_THAT(recorder.parts(), SizeIs(1)) << "of the last timed run";
  executor->record_parts(nullptr);
  throw_if_failed(executor->run(steps));
  EXPECT_THAT(recorder.parts(), SizeIs(1));
}

int32_t three_loops(const hr_kernel_env* env, DLTensor* const*) {
  for (int i = 0; i < 3; ++i) {
    if (const int32_t status = env->parallel_for(env, nothing, nullptr, 1); status != 0) return status;
  }
  return 0;
}

TEST(PartTimes, PartsWithoutRoomAreCounted) {
  const ToyProgram toy(three_loops);
  const auto executor = toy.executor(1);
  PartTimes recorder(1, 2);
  executor->record_parts(&recorder);
  std::vector<uint64_t> steps(executor->num_steps());
  for (int run = 0; run < 2; ++run) {
    throw_if_failed(executor->run(steps));
    EXPECT_THAT(recorder.parts(), SizeIs(2));
    EXPECT_EQ(recorder.num_lost(), 1u);
  }
}

TEST(PartTimes, FailuresKeepTheirCodeAndMessage) {
  ToyProgram toy(nullptr);
  toy.callees[0].kernel = toy.kernel("toy_fail");
  const auto executor = toy.executor(2);
  PartTimes recorder(executor->num_threads());
  executor->record_parts(&recorder);
  std::vector<uint64_t> steps(executor->num_steps());
  const Status status = executor->run(steps);
  EXPECT_EQ(status.code, 7);
  EXPECT_EQ(status.op, "fc1");
  EXPECT_EQ(status.message, "row 4 is out of bounds");
  EXPECT_THAT(recorder.parts(), SizeIs(2));
}

TEST(PartTimes, RecordsOfFewerThreadsAreRefused) {
  const ToyProgram toy(loop_alone);
  const auto executor = toy.executor(2);
  PartTimes recorder(1);
  EXPECT_THROW(executor->record_parts(&recorder), InternalError);
  std::vector<uint64_t> steps(executor->num_steps());
  throw_if_failed(executor->run(steps));
}

}  // namespace
}  // namespace headrace::executors
