#include "executors/message.h"

#include <gtest/gtest.h>

#include "base/utf8.h"

namespace headrace::executors {
namespace {

TEST(Message, IsWritten) {
  Message message;
  EXPECT_EQ(message.view(), "");
  message.write("{} of {}", 3, "four");
  EXPECT_EQ(message.view(), "3 of four");
  message.clear();
  EXPECT_EQ(message.view(), "");
}

// Whatever the length before it is, no character of several bytes is cut in two.
TEST(Message, IsCutBetweenCharacters) {
  for (size_t before = 1010; before < 1030; ++before) {
    Message message;
    message.write("{}{}{}", std::string(before, 'x'), "\xE2\x82\xAC", std::string(20, 'y'));
    EXPECT_TRUE(is_utf8(message.view())) << before;
    EXPECT_LT(message.view().size(), message.size());
    EXPECT_GE(message.view().size(), std::min<size_t>(before, 1020));
  }
}

}  // namespace
}  // namespace headrace::executors
