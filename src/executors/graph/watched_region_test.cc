// Regions with a time limit: what the caller gets in time, and what happens to code that does not return.
#include "executors/graph/watched_region.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "base/interrupt.h"
#include "object/foreign_error.h"

namespace headrace::executors {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

// Two rows of float32: an input and an output.
struct Tensors {
  std::vector<float> x, y;
  int64_t shape[1] = {2};
  DLTensor input{}, output{};
  std::vector<DLTensor*> args;

  Tensors(std::vector<float> x_values, std::vector<float> y_values) : x(std::move(x_values)), y(std::move(y_values)) {
    for (auto [tensor, data] : {std::pair(&input, x.data()), std::pair(&output, y.data())}) {
      *tensor = {.data = data,
                 .device = {kDLCPU, 0},
                 .ndim = 1,
                 .dtype = {kDLFloat, 32, 1},
                 .shape = shape,
                 .strides = nullptr,
                 .byte_offset = 0};
      args.push_back(tensor);
    }
  }
};

std::shared_ptr<runtime::ThreadPool> pool_of(int32_t num_workers) {
  return std::make_shared<runtime::ThreadPool>(num_workers);
}

float* data_of(const DLTensor* tensor) { return static_cast<float*>(tensor->data); }

void double_it(DLTensor* const* args) {
  for (int i = 0; i < 2; ++i) data_of(args[1])[i] = 2 * data_of(args[0])[i];
}

TEST(WatchedRegion, RunsOnCopiesOfTheTensors) {
  Tensors tensors({1, 2}, {0, 0});
  std::vector<const void*> seen;
  WatchedRegion region({.run =
                            [&](const hr_kernel_env&, DLTensor* const* args, RegionOutcome&) {
                              seen = {args[0]->data, args[1]->data};
                              double_it(args);
                            },
                        .owner = {},
                        .pool = pool_of(1)},
                       tensors.args, 1);
  for (const float first : {1.F, 5.F}) {
    tensors.x[0] = first;
    const auto outcome = region.run(tensors.args, seconds(60));
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->code, 0);
    EXPECT_THAT(tensors.y, ElementsAre(2 * first, 4));
  }
  EXPECT_NE(seen[0], tensors.x.data());
  EXPECT_NE(seen[1], tensors.y.data());
}

// Other memory may be bound between two runs.
TEST(WatchedRegion, ReadsAndWritesTheTensorsOfTheRun) {
  Tensors first({1, 2}, {0, 0}), second({3, 4}, {0, 0});
  WatchedRegion region({.run = [](const hr_kernel_env&, DLTensor* const* args, RegionOutcome&) { double_it(args); },
                        .owner = {},
                        .pool = pool_of(1)},
                       first.args, 1);
  ASSERT_TRUE(region.run(second.args, seconds(60)));
  EXPECT_THAT(first.y, ElementsAre(0, 0));
  EXPECT_THAT(second.y, ElementsAre(6, 8));
}

TEST(WatchedRegion, AFailureComesWithItsSentenceAndWithoutOutputs) {
  Tensors tensors({1, 2}, {7, 7});
  WatchedRegion region({.run =
                            [](const hr_kernel_env& env, DLTensor* const* args, RegionOutcome& outcome) {
                              double_it(args);
                              std::strncpy(env.message, "the chip is too hot", env.message_size);
                              outcome.code = 5;
                            },
                        .owner = {},
                        .pool = pool_of(1)},
                       tensors.args, 1);
  const auto outcome = region.run(tensors.args, seconds(60));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 5);
  EXPECT_EQ(outcome->message.view(), "the chip is too hot");
  EXPECT_THAT(tensors.y, ElementsAre(7, 7));
}

TEST(WatchedRegion, ItsCodeHasTheThreadsAndScratchOfItsOwn) {
  Tensors tensors({1, 2}, {0, 0});
  WatchedRegion region({.run =
                            [](const hr_kernel_env& env, DLTensor* const* args, RegionOutcome& outcome) {
                              std::memset(env.workspace, 1, 3 * 64);  // workspaces of three workers
                              const auto body = [](const hr_kernel_env*, void* closure, int64_t begin, int64_t end) {
                                auto* const* tensor = static_cast<DLTensor* const*>(closure);
                                for (int64_t i = begin; i < end; ++i) data_of(tensor[1])[i] = data_of(tensor[0])[i] + 1;
                                return int32_t{0};
                              };
                              outcome.code = env.parallel_for(&env, body, const_cast<DLTensor**>(args), 2);
                              if (env.num_workers != 3 || env.workspace_size != 64) outcome.code = 9;
                            },
                        .owner = {},
                        .pool = pool_of(3),
                        .workspace_bytes = 64},
                       tensors.args, 1);
  const auto outcome = region.run(tensors.args, seconds(60));
  ASSERT_TRUE(outcome);
  EXPECT_EQ(outcome->code, 0);
  EXPECT_THAT(tensors.y, ElementsAre(2, 3));
}

TEST(WatchedRegion, CodeThatDoesNotReturnIsGivenUpAndKeepsWhatItUses) {
  struct Shared {
    std::atomic<bool> may_return = false;
    std::atomic<int> num_calls = 0;
  };
  const auto shared = std::make_shared<Shared>();
  auto owner = std::make_shared<int>(0);
  const std::weak_ptr<int> owner_lives = owner;
  Tensors tensors({1, 2}, {7, 7});
  {
    WatchedRegion region({.run =
                              [shared](const hr_kernel_env&, DLTensor* const* args, RegionOutcome&) {
                                ++shared->num_calls;
                                while (!shared->may_return) std::this_thread::sleep_for(milliseconds(1));
                                double_it(args);
                              },
                          .owner = std::move(owner),
                          .pool = pool_of(1)},
                         tensors.args, 1);
    EXPECT_FALSE(region.run(tensors.args, milliseconds(30)));
    EXPECT_FALSE(region.run(tensors.args, seconds(60)));  // at once: it is not called again
  }
  EXPECT_EQ(shared->num_calls, 1);
  EXPECT_FALSE(owner_lives.expired());
  shared->may_return = true;
  for (int i = 0; i < 10000 && !owner_lives.expired(); ++i) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(owner_lives.expired());
  EXPECT_THAT(tensors.y, ElementsAre(7, 7));
}

// The limit is a minute, and the test is not.
TEST(WatchedRegion, AnInterruptEndsTheWait) {
  const auto may_return = std::make_shared<std::atomic<bool>>(false);
  Tensors tensors({1, 2}, {7, 7});
  WatchedRegion region({.run =
                            [may_return](const hr_kernel_env&, DLTensor* const* args, RegionOutcome&) {
                              while (!*may_return) std::this_thread::sleep_for(milliseconds(1));
                              double_it(args);
                            },
                        .owner = {},
                        .pool = pool_of(1)},
                       tensors.args, 1);
  {
    const InterruptScope scope([] { throw ForeignError("KeyboardInterrupt", "stop", {}); });
    const std::optional<RegionOutcome> outcome = region.run(tensors.args, seconds(60));
    ASSERT_TRUE(outcome.has_value());
    EXPECT_NE(outcome->code, 0);
    ASSERT_TRUE(outcome->error);
    EXPECT_EQ(outcome->error->kind, "KeyboardInterrupt");
  }
  const std::optional<RegionOutcome> later = region.run(tensors.args, seconds(60));
  ASSERT_TRUE(later.has_value());
  EXPECT_NE(later->code, 0);
  EXPECT_FALSE(later->error);
  EXPECT_EQ(later->message.view(),
            "the backend's code did not return before a run was interrupted, and is not called again");
  EXPECT_THAT(tensors.y, ElementsAre(7, 7));
  *may_return = true;
}

// The code returns while the check of the interrupt runs; the region may run again.
TEST(WatchedRegion, AnInterruptIsNotLostWhereTheCodeReturnsMeanwhile) {
  static std::atomic<bool> may_return, has_ended;
  may_return = has_ended = false;
  Tensors tensors({1, 2}, {7, 7});
  WatchedRegion region({.run =
                            [](const hr_kernel_env&, DLTensor* const* args, RegionOutcome&) {
                              while (!may_return) std::this_thread::sleep_for(milliseconds(1));
                              double_it(args);
                              has_ended = true;
                            },
                        .owner = {},
                        .pool = pool_of(1)},
                       tensors.args, 1);
  {
    const InterruptScope scope([] {
      may_return = true;
      while (!has_ended) std::this_thread::sleep_for(milliseconds(1));
      std::this_thread::sleep_for(milliseconds(100));  // the thread says that it is done
      throw ForeignError("KeyboardInterrupt", "stop", {});
    });
    const std::optional<RegionOutcome> outcome = region.run(tensors.args, seconds(60));
    ASSERT_TRUE(outcome.has_value());
    EXPECT_NE(outcome->code, 0);
    ASSERT_TRUE(outcome->error);
    EXPECT_EQ(outcome->error->kind, "KeyboardInterrupt");
  }
  EXPECT_THAT(tensors.y, ElementsAre(7, 7));
  const std::optional<RegionOutcome> later = region.run(tensors.args, seconds(60));
  ASSERT_TRUE(later.has_value());
  EXPECT_EQ(later->code, 0);
  EXPECT_THAT(tensors.y, ElementsAre(2, 4));
}

TEST(WatchedRegion, OneThatNeverRanEnds) {
  Tensors tensors({1, 2}, {0, 0});
  WatchedRegion region(
      {.run = [](const hr_kernel_env&, DLTensor* const*, RegionOutcome&) {}, .owner = {}, .pool = pool_of(1)},
      tensors.args, 1);
}

}  // namespace
}  // namespace headrace::executors
