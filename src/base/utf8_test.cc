#include "base/utf8.h"

#include <gtest/gtest.h>

namespace headrace {
namespace {

TEST(Utf8, CharactersOfEachLength) {
  EXPECT_EQ(utf8_length("a"), 1U);
  EXPECT_EQ(utf8_length("\xC3\xA9t\xC3\xA9"), 2U);
  EXPECT_EQ(utf8_length("\xE2\x82\xAC"), 3U);
  EXPECT_EQ(utf8_length("\xF0\x9F\x8C\x8A"), 4U);
  EXPECT_TRUE(is_utf8("plain, \xC3\xA9t\xC3\xA9, \xF0\x9F\x8C\x8A"));
  EXPECT_TRUE(is_utf8(""));
}

TEST(Utf8, MalformedSequences) {
  for (const std::string_view text :
       {"\x80", "\xFF", "\xC3", "\xE2\x82", "\xC0\xAF" /* long form */, "\xE0\x80\xAF" /* long form */,
        "\xED\xA0\x80" /* surrogate */, "\xF4\x90\x80\x80" /* past the last */, "\xF5\x80\x80\x80"}) {
    EXPECT_EQ(utf8_length(text), 0U) << testing::PrintToString(text);
    EXPECT_FALSE(is_utf8(std::string("a") + std::string(text)));
  }
}

TEST(Utf8, OtherBytesAreReplaced) {
  EXPECT_EQ(as_utf8("größe"), "größe");
  EXPECT_EQ(as_utf8("a\xff\xc3"), "a\xef\xbf\xbd\xef\xbf\xbd");
  EXPECT_EQ(as_utf8(""), "");
}

}  // namespace
}  // namespace headrace
