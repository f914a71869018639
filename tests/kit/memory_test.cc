// guard_page.h and count_allocations.h.
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

#include "kit/count_allocations.h"
#include "kit/guard_page.h"

namespace headrace::kit {
namespace {

TEST(GuardedBuffer, IsUsableToItsEnds) {
  GuardedBuffer buffer(4097, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0U);
  for (std::byte& byte : buffer.bytes()) byte = std::byte{1};
  EXPECT_TRUE(buffer.is_slack_intact());
}

TEST(GuardedBuffer, SeesWritesIntoTheSlack) {
  GuardedBuffer buffer(60, 64);
  buffer.data()[60] = std::byte{0};
  EXPECT_FALSE(buffer.is_slack_intact());
  GuardedBuffer other(60, 4);
  other.data()[-1] = std::byte{0};
  EXPECT_FALSE(other.is_slack_intact());
}

TEST(GuardedBufferDeathTest, FaultsPastTheEnd) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        GuardedBuffer buffer(100, 4);
        *const_cast<volatile std::byte*>(buffer.data() + 100) = std::byte{0};
      },
      "");
}

TEST(GuardedBufferDeathTest, FaultsBeforeAWholePage) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        GuardedBuffer buffer(4096);
        *const_cast<volatile std::byte*>(buffer.data() - 1) = std::byte{0};
      },
      "");
}

TEST(GuardedBuffer, OfNothing) {
  GuardedBuffer buffer(0, 64);
  EXPECT_TRUE(buffer.bytes().empty());
  EXPECT_TRUE(buffer.is_slack_intact());
}

TEST(CountAllocations, CountsEveryKind) {
  CountAllocations counter;
  EXPECT_EQ(counter.count().allocations, 0);
  auto number = std::make_unique<int>(3);
  EXPECT_EQ(counter.count().allocations, 1);
  std::vector<char> list(1000);
  EXPECT_EQ(counter.count().allocations, 2);
  EXPECT_GE(counter.count().bytes, 1004);
  void* volatile block = std::malloc(10);
  block = std::realloc(block, 20000);
  std::free(block);
  block = std::aligned_alloc(64, 128);
  std::free(block);
  EXPECT_GE(counter.count().allocations, 5);
  EXPECT_EQ(*number, 3);
}

TEST(CountAllocations, CountsNothingWhenNothingIsAllocated) {
  std::vector<int> list(100, 1);
  CountAllocations counter;
  for (int& element : list) element += 2;
  EXPECT_EQ(counter.count().allocations, 0);
  EXPECT_EQ(list[99], 3);
}

}  // namespace
}  // namespace headrace::kit
