// Tests of mistakes that keep patterns from matching.
#include "relay/patterns/pattern_mistakes.h"

#include <gtest/gtest.h>

#include "ops/all_ops.h"
#include "relay/patterns/pattern_text.h"

namespace headrace::relay {
namespace {

std::string mistake_of(const std::string& text) {
  ops::register_all_ops();
  const DFPattern pattern = parse_pattern(text);
  std::string mistake = mistake_in(pattern);
  release_recursions(pattern);
  return mistake;
}

TEST(PatternMistakes, PatternsThatCanMatch) {
  for (const char* text :
       {"_", "nn.conv2d(_, const)[attrs groups=1, kernel_layout=\"OIHW\"]", "concatenate(*)",
        "concatenate(tuple(*))[attrs axis=1]", "nn.conv2d(*)[attrs groups=1]", "nn.relu[attrs TOpPattern=0](_)",
        "_(_, _, _)", "(exp(_) or tanh(_))[attrs a=1]", "rec %0 = cast(%0) or nn.dense(_, _);\ncast(%0)"})
    EXPECT_EQ(mistake_of(text), "") << text;
}

TEST(PatternMistakes, AnotherNumberOfArguments) {
  EXPECT_EQ(mistake_of("tanh(nn.relu(_, _))"), "nn.relu takes 1 argument and has 2 in nn.relu(_, _)");
  EXPECT_EQ(mistake_of("_ or nn.dense(_)"), "nn.dense takes 2 arguments and has 1 in nn.dense(_)");
  EXPECT_EQ(mistake_of("rec %0 = add(%0) or const;\nexp(%0)").substr(0, 32), "add takes 2 arguments and has 1 ");
}

TEST(PatternMistakes, UnknownAttributes) {
  EXPECT_EQ(mistake_of("nn.relu(sqrt(_)[attrs foo=1])"),
            "sqrt has no attribute 'foo'; it has none in sqrt(_)[attrs foo=1]");
  EXPECT_EQ(
      mistake_of("nn.softmax(_)[shape (1, ?)][dtype float32][attrs axes=1]"),
      "nn.softmax has no attribute 'axes'; it has axis in nn.softmax(_)[shape (1, ?)][dtype float32][attrs axes=1]");
  EXPECT_EQ(mistake_of("nn.softmax(*)[attrs axes=1][type \"Tensor[(2), int8]\"]"),
            "nn.softmax has no attribute 'axes'; it has axis in nn.softmax(*)[attrs axes=1]");
}

}  // namespace
}  // namespace headrace::relay
