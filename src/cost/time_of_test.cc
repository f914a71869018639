#include "cost/time_of.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace::cost {
namespace {

// Round numbers: 8 lanes x 2 operations x 2 ports x 2 GHz = 64 Gop/s of float32.
const Machine kRound{.vector_bits = 256,
                     .has_fma = true,
                     .fma_ports = 2,
                     .fma_port_bits = 256,
                     .gigahertz = 2.0,
                     .l2_bytes = 1000,
                     .l3_bytes = 10'000,
                     .l2_gigabytes = 100,
                     .l3_gigabytes = 50,
                     .dram_gigabytes = 10,
                     .all_dram_gigabytes = 25,
                     .fork_seconds = 1e-6};

TEST(TimeOf, ArithmeticBoundsAStepOfFewBytes) {
  EXPECT_NEAR(time_of({.operations = 64e9, .bytes_read = 100}, kRound), 1.0, 1e-12);
  EXPECT_NEAR(time_of({.operations = 64e9, .bytes_read = 100, .dtype = DataType::float_(64)}, kRound), 2.0, 1e-12);
  EXPECT_NEAR(time_of({.operations = 64e9, .bytes_read = 100, .dtype = DataType::int_(8)}, kRound), 0.25, 1e-12);
}

TEST(TimeOf, TrafficBoundsAStepOfFewOperations) {
  EXPECT_NEAR(time_of({.operations = 1, .bytes_read = 600, .bytes_written = 400}, kRound), 1000 / 100e9, 1e-18);
  // In the L3 cache a byte written counts twice.
  EXPECT_NEAR(time_of({.operations = 1, .bytes_read = 3000, .bytes_written = 1000}, kRound), 5000 / 50e9, 1e-18);
  EXPECT_NEAR(time_of({.operations = 1, .bytes_read = 20'000, .bytes_written = 5000}, kRound), 30'000 / 10e9, 1e-18);
}

TEST(TimeOf, ThreadsShareTheWorkAndPayTheFork) {
  EXPECT_NEAR(time_of({.operations = 64e9, .bytes_read = 100}, kRound, 4), 0.25 + 1e-6, 1e-12);
  // 2,000 bytes fit into the L2 caches of two threads.
  EXPECT_NEAR(time_of({.operations = 0, .bytes_read = 2000}, kRound, 2), 2000 / 200e9 + 1e-6, 1e-18);
  // Four threads want 40 GB/s of the memory, which gives 25.
  EXPECT_NEAR(time_of({.operations = 0, .bytes_read = 50'000}, kRound, 4), 50'000 / 25e9 + 1e-6, 1e-18);
}

TEST(TimeOf, NothingTakesNoTime) { EXPECT_EQ(time_of({}, kRound), 0); }

TEST(TimeOf, NegativeNumbersAreRefused) {
  EXPECT_THROW(time_of({.operations = -1}, kRound), InternalError);
  EXPECT_THROW(time_of({.operations = 1}, kRound, 0), InternalError);
}

}  // namespace
}  // namespace headrace::cost
