// Narrow floats against the tables of the formats' papers, and all codes against each other.
#include "tensor/narrow_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace headrace {
namespace {

constexpr DataType kE4M3Fn(DataType::kFloat8E4M3Fn, 8), kE4M3Fnuz(DataType::kFloat8E4M3Fnuz, 8),
    kE5M2(DataType::kFloat8E5M2, 8), kE5M2Fnuz(DataType::kFloat8E5M2Fnuz, 8), kE2M1Fn(DataType::kFloat4E2M1Fn, 4);
constexpr DataType kAll[] = {kE4M3Fn, kE4M3Fnuz, kE5M2, kE5M2Fnuz, kE2M1Fn};
constexpr float kInfinity = std::numeric_limits<float>::infinity(), kNan = std::numeric_limits<float>::quiet_NaN();

TEST(NarrowFloat, CodesHaveTheNumbersOfTheFormats) {
  struct Case {
    DataType dtype;
    uint8_t code;
    float number;
  };
  const Case cases[] = {
      {kE4M3Fn, 0x01, 0x1p-9f},
      {kE4M3Fn, 0x07, 0x1.cp-7f},
      {kE4M3Fn, 0x08, 0x1p-6f},
      {kE4M3Fn, 0x38, 1},
      {kE4M3Fn, 0x7e, 448},
      {kE4M3Fn, 0xfe, -448},
      {kE4M3Fnuz, 0x01, 0x1p-10f},
      {kE4M3Fnuz, 0x40, 1},
      {kE4M3Fnuz, 0x7f, 240},
      {kE4M3Fnuz, 0xff, -240},
      {kE5M2, 0x01, 0x1p-16f},
      {kE5M2, 0x04, 0x1p-14f},
      {kE5M2, 0x3c, 1},
      {kE5M2, 0x7b, 57344},
      {kE5M2, 0x7c, kInfinity},
      {kE5M2, 0xfc, -kInfinity},
      {kE5M2Fnuz, 0x01, 0x1p-17f},
      {kE5M2Fnuz, 0x40, 1},
      {kE5M2Fnuz, 0x7f, 57344},
      {kE2M1Fn, 0x01, 0.5f},
      {kE2M1Fn, 0x02, 1},
      {kE2M1Fn, 0x03, 1.5f},
      {kE2M1Fn, 0x05, 3},
      {kE2M1Fn, 0x07, 6},
      {kE2M1Fn, 0x0f, -6},
      {kE2M1Fn, 0xf2, 1},  // bits above the fourth do not count
  };
  for (const Case& c : cases)
    EXPECT_EQ(narrow_to_float(c.code, c.dtype), c.number) << c.dtype.to_string() << " " << int{c.code};
  for (const int code : {0x7f, 0xff}) EXPECT_TRUE(std::isnan(narrow_to_float(static_cast<uint8_t>(code), kE4M3Fn)));
  for (const int code : {0x7d, 0x7e, 0x7f, 0xfd, 0xff})
    EXPECT_TRUE(std::isnan(narrow_to_float(static_cast<uint8_t>(code), kE5M2)));
  for (const DataType dtype : {kE4M3Fnuz, kE5M2Fnuz}) EXPECT_TRUE(std::isnan(narrow_to_float(0x80, dtype)));
  for (const DataType dtype : {kE4M3Fn, kE5M2}) EXPECT_TRUE(std::signbit(narrow_to_float(0x80, dtype)));
}

TEST(NarrowFloat, EveryCodeComesBack) {
  for (const DataType dtype : kAll) {
    for (int code = 0; code < 1 << dtype.bits(); ++code) {
      const float number = narrow_to_float(static_cast<uint8_t>(code), dtype);
      // NaNs become one of each sign, and infinities the greatest numbers.
      if (std::isnan(number)) {
        EXPECT_TRUE(std::isnan(narrow_to_float(float_to_narrow(number, dtype), dtype)))
            << dtype.to_string() << " " << code;
      } else if (std::isinf(number)) {
        EXPECT_EQ(float_to_narrow(number, dtype), code - 1) << dtype.to_string();
      } else {
        EXPECT_EQ(float_to_narrow(number, dtype), code) << dtype.to_string();
      }
    }
  }
}

TEST(NarrowFloat, TiesGoToEvenAndTheRestToTheNearest) {
  for (const DataType dtype : kAll) {
    const NarrowFloat row = narrow_float(dtype);
    for (uint8_t code = 0; code < row.greatest; ++code) {
      const auto next = static_cast<uint8_t>(code + 1);
      const float middle = (narrow_to_float(code, dtype) + narrow_to_float(next, dtype)) / 2;  // exact
      const int even = code % 2 == 0 ? code : next;
      EXPECT_EQ(float_to_narrow(middle, dtype), even) << dtype.to_string() << " " << int{code};
      EXPECT_EQ(float_to_narrow(std::nextafter(middle, 0.0f), dtype), code) << dtype.to_string();
      EXPECT_EQ(float_to_narrow(std::nextafter(middle, kInfinity), dtype), next) << dtype.to_string();
      const bool is_zero = even == 0 && row.is_unsigned_zero;
      EXPECT_EQ(float_to_narrow(-middle, dtype), is_zero ? 0 : even | row.sign) << dtype.to_string();
    }
  }
}

TEST(NarrowFloat, GreatNumbersSaturateAndNansStay) {
  for (const DataType dtype : kAll) {
    const NarrowFloat row = narrow_float(dtype);
    for (const float great : {kInfinity, 1e30f, std::nextafter(narrow_to_float(row.greatest, dtype), kInfinity)}) {
      EXPECT_EQ(float_to_narrow(great, dtype), row.greatest) << dtype.to_string();
      EXPECT_EQ(float_to_narrow(-great, dtype), row.greatest | row.sign) << dtype.to_string();
    }
    EXPECT_EQ(float_to_narrow(std::numeric_limits<float>::denorm_min(), dtype), 0) << dtype.to_string();
    EXPECT_EQ(float_to_narrow(-0.0f, dtype), row.is_unsigned_zero ? 0 : row.sign) << dtype.to_string();
  }
  EXPECT_EQ(float_to_narrow(kNan, kE4M3Fn), 0x7f);
  EXPECT_EQ(float_to_narrow(-kNan, kE4M3Fn), 0xff);
  EXPECT_EQ(float_to_narrow(kNan, kE5M2), 0x7e);
  for (const DataType dtype : {kE4M3Fnuz, kE5M2Fnuz}) EXPECT_EQ(float_to_narrow(-kNan, dtype), 0x80);
  // A format without NaN: as ml_dtypes' float4_e2m1fn.
  EXPECT_EQ(float_to_narrow(kNan, kE2M1Fn), 0x8);
  EXPECT_EQ(float_to_narrow(-kNan, kE2M1Fn), 0x0);
}

}  // namespace
}  // namespace headrace
