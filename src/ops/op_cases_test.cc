// Ops against results from outside: numpy, scipy, onnx's reference evaluator (tests/make_op_cases.py).
#include "ops/tests/op_cases.h"

#include <set>

#include "interp/interp.h"
#include "ops/tests/op_testing.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"
#include "relay/visit.h"

namespace headrace::ops::testing {
namespace {

using OpCasesTest = OpTest;

relay::Function parse(const OpCase& c) {
  return relay::infer_type(relay::parse_expr(c.program)).cast<relay::FunctionNode>();
}

TEST_F(OpCasesTest, EvaluationAgreesWithTheOracle) {
  for (const OpCase& c : read_op_cases()) {
    if (c.fails()) continue;
    SCOPED_TRACE(c.name + ": " + c.program);
    try {
      const std::vector<NDArray> got = interp::run_main(make_module(parse(c)), c.inputs);
      ASSERT_EQ(got.size(), c.outputs.size());
      for (size_t k = 0; k < got.size(); ++k) {
        EXPECT_EQ(got[k].dtype(), c.outputs[k].dtype());
        expect_near(got[k], c.outputs[k].shape(), to_doubles(c.outputs[k]), c.tolerance);
      }
    } catch (const UserError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST_F(OpCasesTest, WrongCallsAreErrors) {
  for (const OpCase& c : read_op_cases()) {
    if (!c.fails()) continue;
    SCOPED_TRACE(c.name + ": " + c.program);
    try {
      const relay::Function function = parse(c);
      if (c.fails_late()) interp::run_main(make_module(function), c.inputs);
      ADD_FAILURE() << "no error";
    } catch (const UserError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(c.message));
    }
  }
}

// Every op that has cases of this kind has both: results, and a call that is refused.
TEST_F(OpCasesTest, EveryOpHasAResultAndAnError) {
  std::set<std::string> right, wrong;
  for (const OpCase& c : read_op_cases()) {
    relay::post_order(relay::parse_expr(c.program), [&](const Expr& expr) {
      const auto* op = expr.as<OpNode>();
      if (op != nullptr) (c.fails() ? wrong : right).insert(op->name);
    });
  }
  EXPECT_EQ(right, wrong);
  EXPECT_GE(right.size(), 30u);
}

}  // namespace
}  // namespace headrace::ops::testing
