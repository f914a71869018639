#include "base/json_string.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

// RFC 8259, section 7: what must be escaped in a string.
TEST(JsonString, EscapesWhatMustBeEscaped) {
  EXPECT_EQ(json_string(""), "\"\"");
  EXPECT_EQ(json_string("stage 1"), "\"stage 1\"");
  EXPECT_EQ(json_string("a\"b\\c"), "\"a\\\"b\\\\c\"");
  EXPECT_EQ(json_string("a\nb\x1f"), "\"a\\u000ab\\u001f\"");
  EXPECT_EQ(json_string("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(json_string("a\xff"
                        "b"),
            "\"a\xef\xbf\xbd"
            "b\"");
}

}  // namespace
}  // namespace headrace
