#include "tools/headrace/shown_text.h"

#include <gtest/gtest.h>

namespace headrace::tools {
namespace {

TEST(ShownText, KeepsText) {
  for (const char* text : {"", "conv1/weights:0", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "a\\x1b"})
    EXPECT_EQ(shown(text), text);
}

TEST(ShownText, EscapesControlCharacters) {
  EXPECT_EQ(shown("\x1b[31mred"), "\\x1b[31mred");
  EXPECT_EQ(shown("a\nb\tc\r\x7f"), "a\\x0ab\\x09c\\x0d\\x7f");
  EXPECT_EQ(shown(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(shown("\xc2\x9b"
                  "31m"),
            "\\u009b31m");  // CSI as one character
}

TEST(ShownText, EscapesWhatReordersLines) {
  EXPECT_EQ(shown("\xe2\x80\xae"
                  "abc"),
            "\\u202eabc");
  EXPECT_EQ(shown("\xe2\x81\xa6"), "\\u2066");
  EXPECT_EQ(shown("\xd8\x9c"), "\\u061c");
}

TEST(ShownText, EscapesWhatIsNoUtf8) {
  EXPECT_EQ(shown("caf\xe9"), "caf\\xe9");
  EXPECT_EQ(shown("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(shown("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // a surrogate
}

TEST(ShownText, MessagesKeepTheirLines) { EXPECT_EQ(shown("a\n  b\x1b", Newlines::kKept), "a\n  b\\x1b"); }

}  // namespace
}  // namespace headrace::tools
