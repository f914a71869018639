// The cost of one more stage for a request, in instructions: the gate of the numbers that `./dev bench pipeline` shows
// by the clock.
#include <gtest/gtest.h>

#include <csignal>

#include "kit/hop_harness.h"

namespace headrace::executors::pipeline {
namespace {

TEST(Hop, TakesFewInstructionsInAGroup) {
  const std::optional<double> count = kit::count_hop(true);
  if (!count) GTEST_SKIP() << "instructions cannot be counted here";
  RecordProperty("instructions", std::to_string(*count));
  EXPECT_GT(*count, 50);
  EXPECT_LE(*count, 500);
}

TEST(Hop, TakesFewInstructionsBetweenGroups) {
  const std::optional<double> count = kit::count_hop(false);
  if (!count) GTEST_SKIP() << "instructions cannot be counted here";
  RecordProperty("instructions", std::to_string(*count));
  EXPECT_GT(*count, 50);
  EXPECT_LE(*count, 600);
}

TEST(CountInstructions, CountsALoop) {
  const auto count = [](int64_t rounds) {
    return kit::count_instructions([] {},
                                   [rounds] {
                                     for (int64_t i = 0; i < rounds; ++i) asm volatile("nop\n\tnop\n\tnop");
                                   });
  };
  const std::optional<int64_t> few = count(100), many = count(1100);
  if (!few) GTEST_SKIP() << "instructions cannot be counted here";
  EXPECT_EQ(*many - *few, (*many - *few) / 1000 * 1000);  // each round has as many
  EXPECT_GE(*many - *few, 3000);
  EXPECT_LE(*many - *few, 20000);
}

TEST(CountInstructions, SaysThatTheWorkFailed) {
  if (!kit::count_instructions([] {}, [] {})) GTEST_SKIP() << "instructions cannot be counted here";
  EXPECT_THROW(kit::count_instructions([] {}, [] { throw std::runtime_error("no"); }), InternalError);
  EXPECT_THROW(kit::count_instructions([] {}, [] { raise(SIGSEGV); }), InternalError);
}

}  // namespace
}  // namespace headrace::executors::pipeline
