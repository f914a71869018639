#include "backends/onednn/arena_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace headrace_onednn {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMany = 10'000;

TEST(ArenaPlan, AChainTakesTheMemoryOfTwo) {
  std::vector<Lifetime> chain;
  for (size_t i = 0; i < kMany; ++i) chain.push_back({.first = i, .last = i + 1, .nbytes = 100});
  const ArenaPlan plan = plan_arena(chain, kAlignment);
  EXPECT_EQ(plan.nbytes, 256u);
  EXPECT_LE(plan.num_examined, kMany);
}

TEST(ArenaPlan, LooksAtFewGapsWhereManyLifetimesMeet) {
  std::vector<Lifetime> wide;  // all made, then read in the same order, each with a result that stays
  for (size_t i = 0; i < kMany; ++i) wide.push_back({.first = i, .last = kMany + i, .nbytes = 64});
  for (size_t i = 0; i < kMany; ++i) wide.push_back({.first = kMany + i, .last = 2 * kMany, .nbytes = 64});
  const ArenaPlan plan = plan_arena(wide, kAlignment);
  EXPECT_EQ(plan.nbytes, 64 * (kMany + 1));
  EXPECT_LE(plan.num_examined, 2 * kMany);
}

TEST(ArenaPlan, OrderDoesNotMatterAndAGapInTheMiddleIsUsed) {
  std::vector<Lifetime> lifetimes = {{.first = 4, .last = 5, .nbytes = 64},
                                     {.first = 0, .last = 5, .nbytes = 128},
                                     {.first = 1, .last = 2, .nbytes = 192},
                                     {.first = 1, .last = 5, .nbytes = 64}};
  EXPECT_EQ(plan_arena(lifetimes, kAlignment).nbytes, 384u);
  EXPECT_EQ(lifetimes[1].offset, 0u);
  EXPECT_EQ(lifetimes[2].offset, 128u);
  EXPECT_EQ(lifetimes[3].offset, 320u);
  EXPECT_EQ(lifetimes[0].offset, 128u);
}

TEST(ArenaPlan, LifetimesThatMeetLieApart) {
  for (uint32_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    std::vector<Lifetime> lifetimes(100);
    for (Lifetime& one : lifetimes) {
      one.first = random() % 60;
      one.last = one.first + random() % 12;
      one.nbytes = 1 + random() % 1000;
    }
    const ArenaPlan plan = plan_arena(lifetimes, kAlignment);
    for (size_t i = 0; i < lifetimes.size(); ++i) {
      const Lifetime& a = lifetimes[i];
      EXPECT_EQ(a.offset % kAlignment, 0u);
      EXPECT_LE(a.offset + a.nbytes, plan.nbytes);
      for (size_t k = 0; k < i; ++k) {
        const Lifetime& b = lifetimes[k];
        if (std::max(a.first, b.first) > std::min(a.last, b.last)) continue;
        EXPECT_TRUE(a.offset + a.nbytes <= b.offset || b.offset + b.nbytes <= a.offset) << i << " and " << k;
      }
    }
  }
}

}  // namespace
}  // namespace headrace_onednn
