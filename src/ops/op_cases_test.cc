// Ops against results from outside: numpy, scipy, onnx's reference evaluator (tests/make_op_cases.py).
#include "ops/tests/op_cases.h"

#include "interp/interp.h"
#include "ops/tests/op_testing.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

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
        ASSERT_EQ(got[k].shape(), c.outputs[k].shape());
        for (int64_t i = 0; !got[k].dtype().is_float() && i < got[k].num_elements(); ++i)
          ASSERT_EQ(element_as_int(got[k].tensor(), i), element_as_int(c.outputs[k].tensor(), i));
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

// The interpreter runs call_dps itself, and extern.onnx has results nowhere but in the backend that computes it.
TEST_F(OpCasesTest, EveryOpHasAResultAndAnError) {
  std::map<std::string, OpProof> proofs = op_proofs();
  std::vector<std::string> not_evaluated;
  for (const std::string& op : op_names()) {
    const OpProof& proof = proofs[op];
    if (find_op(op)->find(kEval) == nullptr) {
      not_evaluated.push_back(op);
    } else {
      EXPECT_GE(proof.results, 1u) << "no case in op_cases.txt has a result of " << op;
    }
    EXPECT_GE(proof.errors, 1u) << "no case in op_cases.txt is an error of " << op;
  }
  EXPECT_THAT(not_evaluated, ::testing::ElementsAre("call_dps", "extern.onnx"));
}

// With two ops the error could come from either.
TEST_F(OpCasesTest, AnErrorIsOfOneOp) {
  for (const OpCase& c : read_op_cases()) {
    if (!c.fails()) continue;
    EXPECT_EQ(ops_of(c).size(), 1u) << c.program;
  }
}

}  // namespace
}  // namespace headrace::ops::testing
