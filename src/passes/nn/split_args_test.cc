// Tests the option of SplitArgs; its golden text is among those of passes_test.cc.
#include "passes/nn/split_args.h"

#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

TEST(SplitArgs, TheLimitIsChecked) {
  pass::PassContext context;
  EXPECT_EQ(max_function_args(context), 0);
  context.config.set("relay.SplitArgs.max_function_args", Value(2));
  try {
    max_function_args(context);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(), "relay.SplitArgs.max_function_args must be 0 (no limit) or a number from 3 on, got 2");
  }
}

}  // namespace
}  // namespace headrace::passes
