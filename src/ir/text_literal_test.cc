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
  // What a byte holds, since elements below it take one.
  EXPECT_EQ(integer_bits("100", false, DataType::int_(4)), 100U);
  for (const char* bad : {"", "1x", "99999999999999999999"})
    EXPECT_EQ(integer_bits(bad, false, DataType::int_(64)), std::nullopt) << bad;
}

}  // namespace
}  // namespace headrace
