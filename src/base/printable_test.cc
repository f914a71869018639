// Tests that names from files cannot write lines of their own into messages.
#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace headrace {
namespace {

TEST(Printable, ControlCharactersAndBytesThatAreNoTextAreEscaped) {
  EXPECT_EQ(escaped("a\nb\x1b[31m\x7f\t"),
            "a\\x0a"
            "b\\x1b[31m\\x7f\\x09");
  EXPECT_EQ(escaped(std::string_view("a\0b", 3)),
            "a\\x00"
            "b");
  EXPECT_EQ(escaped("caf\xc3\xa9 \xff\xe2\x82"), "caf\xc3\xa9 \\xff\\xe2\\x82");
  EXPECT_EQ(escaped(""), "");
}

TEST(Printable, NamesAreQuotedAndLongOnesAreCutBetweenCharacters) {
  EXPECT_EQ(printable("x\n"), "'x\\x0a'");
  EXPECT_EQ(printable(std::string(80, 'a')), "'" + std::string(80, 'a') + "'");
  EXPECT_EQ(printable(std::string(81, 'a')), "'" + std::string(80, 'a') + "...'");
  EXPECT_EQ(printable(std::string(79, 'a') + "\xc3\xa9"
                                             "b"),
            "'" + std::string(79, 'a') + "\xc3\xa9...'");
}

TEST(Printable, ThePlaceOfAnErrorTakesNoLinesOfItsOwn) {
  const UserError error("wrong", {.op = "conv\nok: all is well", .place = "m\x1b.onnx"});
  EXPECT_EQ(std::string(error.what()), "wrong\n  at: conv\\x0aok: all is well\n  in: m\\x1b.onnx");
  EXPECT_EQ(error.where().op, "conv\nok: all is well") << "the name itself, for callers that look the node up";
  EXPECT_EQ(std::string(UserError(error.what(), error.where()).what()), error.what()) << "an error that is wrapped";
}

}  // namespace
}  // namespace headrace
