#include "cost/probes.h"

#include <gtest/gtest.h>

namespace headrace::cost {
namespace {

// Speeds are not tested: each probe ends and gives a number that a processor of today may have.
TEST(Probes, GiveNumbersOfSomeMachine) {
  EXPECT_FALSE(fma_instructions().empty());
  const double peak = fma_gflops(1, 0.001), bandwidth = read_gigabytes(2, 1 << 16, 0.001);
  EXPECT_TRUE(peak > 0.01 && peak < 1e5) << peak;
  EXPECT_TRUE(bandwidth > 0.01 && bandwidth < 1e5) << bandwidth;
  const Caches caches = read_caches();
  EXPECT_TRUE(caches.l2 > 0 && caches.l3 > caches.l2) << caches.l2 << " " << caches.l3;
}

}  // namespace
}  // namespace headrace::cost
