#include "ir/text_literal.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(TextLiteral, IntegersMustFitTheirDtype) {
  EXPECT_EQ(integer_bits("127", false, DataType::int_(8)), 127U);
  EXPECT_EQ(integer_bits("128", false, DataType::int_(8)), std::nullopt);
  EXPECT_EQ(integer_bits("128", true, DataType::int_(8)), ~uint64_t{128} + 1);
  EXPECT_EQ(integer_bits("255", false, DataType::uint(8)), 255U);
  EXPECT_EQ(integer_bits("256", false, DataType::uint(8)), std::nullopt);
  EXPECT_EQ(integer_bits("1", true, DataType::uint(8)), std::nullopt);
  EXPECT_EQ(integer_bits("18446744073709551615", false, DataType::uint(64)), UINT64_MAX);
  EXPECT_EQ(integer_misfit("129", true, DataType::int_(8)), "-129 does not fit int8 (-128 to 127)");
  EXPECT_EQ(integer_misfit("1", true, DataType::uint(64)), "-1 does not fit uint64 (0 to 18446744073709551615)");
  EXPECT_EQ(integer_misfit("9223372036854775808", false, DataType::int_(64)),
            "9223372036854775808 does not fit int64 (-9223372036854775808 to 9223372036854775807)");
  EXPECT_EQ(integer_bits("9223372036854775808", false, DataType::int_(64)), std::nullopt);
  EXPECT_EQ(integer_bits("9223372036854775808", true, DataType::int_(64)), uint64_t{1} << 63);
  EXPECT_EQ(integer_bits("1", false, DataType::bool_()), 1U);
  EXPECT_EQ(integer_bits("2", false, DataType::bool_()), std::nullopt);
  EXPECT_EQ(integer_misfit("2", false, DataType::bool_()), "2 does not fit bool (0 to 1)");
  EXPECT_EQ(integer_bits("7", false, DataType::int_(4)), 7U);
  EXPECT_EQ(integer_bits("8", false, DataType::int_(4)), std::nullopt);
  EXPECT_EQ(integer_bits("8", true, DataType::int_(4)), ~uint64_t{8} + 1);
  EXPECT_EQ(integer_misfit("16", false, DataType::uint(4)), "16 does not fit uint4 (0 to 15)");
  for (const char* bad : {"", "1x", "99999999999999999999"})
    EXPECT_EQ(integer_bits(bad, false, DataType::int_(64)), std::nullopt) << bad;
}

// Numbers that are too small become zero; the position of the first digit decides it.
TEST(TextLiteral, NumbersOutOfRangeAreTinyOrRefused) {
  const auto bits = [](const char* text, DataType dtype) { return real_bits(text, dtype); };
  const DataType f32 = DataType::float_(32), f64 = DataType::float_(64), f16 = DataType::float_(16);
  for (const char* tiny :
       {"1e-60", "0.5e-60", "0.00000000000000000000000000000000000000000000000000000001", "1234e-70"}) {
    EXPECT_EQ(bits(tiny, f32), 0u) << tiny;
    EXPECT_EQ(bits(tiny, f16), 0u) << tiny;
  }
  EXPECT_EQ(bits("1e-99999999999999999999", f64), 0u);
  for (const char* huge : {"0.5e60", "5e60", "0.0000000001e+60", "1e99999999999999999999"}) {
    EXPECT_EQ(bits(huge, f32), std::nullopt) << huge;
    EXPECT_EQ(bits(huge, DataType::bfloat16()), std::nullopt) << huge;
  }
  EXPECT_EQ(bits("0.001e400", f64), std::nullopt);
}

// Numbers beside a tie of float16 that differ by less than float32 can represent.
TEST(TextLiteral, SixteenBitsAreRoundedOnce) {
  EXPECT_EQ(real_bits("1.000488281250001", DataType::float_(16)), 0x3c01u);
  EXPECT_EQ(real_bits("1.00048828125", DataType::float_(16)), 0x3c00u);
  EXPECT_EQ(real_bits("1.003906250000001", DataType::bfloat16()), 0x3f81u);
}

}  // namespace
}  // namespace headrace
