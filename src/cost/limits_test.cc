#include "cost/limits.h"

#include <gtest/gtest.h>

namespace headrace::cost {
namespace {

// 100 operations and 10 bytes of the L2 cache, 5 of the L3, 1 of memory take a nanosecond.
const Limits kLimits{.gflops = 100, .memory = {{"L2", 1000, 10}, {"L3", 5000, 5}, {"DRAM", INT64_MAX, 1}}};

TEST(Limits, TheSlowerOfArithmeticAndTheSmallestMemoryBounds) {
  const auto expect = [](double operations, double bytes, double nanoseconds, std::string_view bound) {
    const LeastTime least = least_time(kLimits, operations, bytes);
    EXPECT_NEAR(least.seconds, nanoseconds * 1e-9, 1e-15);
    EXPECT_EQ(least.bound, bound);
  };
  expect(20000, 1000, 200, "FMA");
  expect(2000, 1000, 100, "L2");
  expect(2000, 1001, 200.2, "L3");
  expect(2000, 6000, 6000, "DRAM");
  expect(0, 0, 0, "FMA");
}

TEST(Limits, ProbesArePositive) {
  const Limits limits = probe_limits(1, 0.002);
  EXPECT_GT(limits.gflops, 0);
  ASSERT_EQ(limits.memory.size(), 3u);
  for (const MemoryLimit& memory : limits.memory) EXPECT_GT(memory.gigabytes, 0) << memory.name;
}

}  // namespace
}  // namespace headrace::cost
