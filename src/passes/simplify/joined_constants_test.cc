// Tests that arithmetic on constants keeps results, for one unusual element among many, in every float dtype.
#include "passes/simplify/joined_constants.h"

#include <gtest/gtest.h>

#include <cmath>

namespace headrace::passes::simplify {
namespace {

// Ones, but for one element; more than a block of them and some over.
NDArray ones_but(DataType dtype, double odd, int64_t at, int64_t count = 523) {
  const NDArray array = NDArray::empty({count}, dtype);
  for (int64_t i = 0; i < count; ++i) set_element(array.tensor(), i, i == at ? odd : 1);
  return array;
}

struct Limits {
  DataType dtype;
  double normal, too_small;  // the smallest number of full precision, and one that has lost digits
};

const std::vector<Limits> kFloats{{DataType::float_(16), 0x1p-14, 0x1p-15},
                                  {DataType::bfloat16(), 0x1p-126, 0x1p-127},
                                  {DataType::float_(32), 0x1p-126, 0x1p-127},
                                  {DataType::float_(64), 0x1p-1022, 0x1p-1023}};

TEST(JoinedConstants, SumsKeepTheirDigits) {
  for (const auto& [dtype, normal, too_small] : kFloats) {
    for (const int64_t at : {0, 255, 256, 522}) {
      SCOPED_TRACE(fmt::format("{} at {}", dtype, at));
      for (const double good : {1.0, -3.0, 0.0, -0.0, normal, -normal})
        EXPECT_TRUE(is_good_sum(ones_but(dtype, good, at)));
      for (const double bad : {too_small, -too_small, HUGE_VAL, -HUGE_VAL, std::nan("")})
        EXPECT_FALSE(is_good_sum(ones_but(dtype, bad, at))) << bad;
    }
    EXPECT_TRUE(is_good_sum(ones_but(dtype, 0, 0, 1)));
    EXPECT_TRUE(is_good_sum(NDArray::empty({0}, dtype)));
  }
  EXPECT_TRUE(is_good_sum(ones_but(DataType::int_(32), 0, 0)));
}

TEST(JoinedConstants, AZeroProductOfSmallFactorsMayHaveBeenANumber) {
  const DataType dtype = DataType::float_(32);
  const NDArray zero = ones_but(dtype, 0, 7), small = ones_but(dtype, 0x1p-100, 7);
  EXPECT_TRUE(is_good_product(zero, ones_but(dtype, 2, 7), zero));
  EXPECT_FALSE(is_good_product(small, small, zero));
  EXPECT_FALSE(is_good_product(zero, zero, ones_but(dtype, HUGE_VAL, 7)));
}

TEST(JoinedConstants, WeightsMayHaveElementsFarBelowTheLargest) {
  const DataType dtype = DataType::float_(32);
  const NDArray one = ones_but(dtype, 1, 0), tiny = ones_but(dtype, 0x1p-140, 300);
  EXPECT_FALSE(is_good_product(one, tiny, tiny));
  EXPECT_TRUE(is_good_weight(one, tiny, tiny));
  const NDArray all_small = NDArray::empty({2}, dtype);
  for (const int64_t i : {0, 1}) set_element(all_small.tensor(), i, 0x1p-120 * (i == 0 ? 1 : 0x1p-10));
  EXPECT_FALSE(is_good_weight(one, one, all_small));
  EXPECT_FALSE(is_good_weight(one, one, ones_but(dtype, std::nan(""), 3)));
}

}  // namespace
}  // namespace headrace::passes::simplify
