// QnnCanonicalize.
#include "passes/nn/qnn_canonicalize.h"

#include <gtest/gtest.h>

#include "ops/op_facts.h"
#include "ops/tests/op_cases.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

using ops::testing::OpCase;

bool has_plain_form(const std::string& op) { return get_op(op)->find(ops::kPlainForm) != nullptr; }

bool calls_quantized_op(const OpCase& c) {
  const std::set<std::string> ops = ops::testing::ops_of(c);
  return std::any_of(ops.begin(), ops.end(), has_plain_form);
}

size_t count_quantized(const IRModule& module) {
  size_t count = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& node) {
    const auto* op = node.as<OpNode>();
    count += op != nullptr && op->find(ops::kPlainForm) != nullptr ? 1 : 0;
  });
  return count;
}

// The cases have each op with parameters and with constants for its scales.
TEST(QnnCanonicalize, PlainOpsGiveTheResultsOfTheOracle) {
  ops::register_all_ops();
  size_t cases = 0;
  for (const OpCase& c : ops::testing::read_op_cases()) {
    if (c.fails() || !calls_quantized_op(c)) continue;
    SCOPED_TRACE(c.name + ": " + c.program);
    const auto function = relay::parse_expr(c.program).cast<relay::FunctionNode>();
    const IRModule module = relay::infer_type(make_module(function));
    const IRModule plain = run_pass("QnnCanonicalize", module);
    EXPECT_EQ(count_quantized(plain), 0u);
    const std::vector<NDArray> got = interp::run_main(plain, c.inputs);
    ASSERT_EQ(got.size(), 1u);
    ASSERT_EQ(got[0].dtype(), c.outputs[0].dtype());
    ASSERT_EQ(got[0].shape(), c.outputs[0].shape());
    for (int64_t i = 0; i < got[0].num_elements(); ++i)
      ASSERT_EQ(element_as_int(got[0].tensor(), i), element_as_int(c.outputs[0].tensor(), i)) << i;
    ++cases;
  }
  EXPECT_GT(cases, 100u);
}

TEST(QnnCanonicalize, LeavesTheOpsWithKernels) {
  const IRModule module = read(
      "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), int8]) {\n"
      "  %0 = qnn.quantize(%x, 0.5f, 3);\n"
      "  qnn.dequantize(qnn.dense(%0, %w, 3, 0, 0.5f, 0.25f), 0.125f, 0)\n"
      "}\n");
  EXPECT_EQ(run_pass("QnnCanonicalize", module), module);
}

// With equal scales and zero points nothing is left but what cuts to the dtype.
TEST(QnnCanonicalize, DropsScalesThatChangeNothing) {
  const IRModule module = read(
      "def @main(%x: Tensor[(5), int32]) {\n"
      "  qnn.requantize(%x, 0.3f, 0, 0.3f, 0)\n"
      "}\n");
  const IRModule plain = run_pass("QnnCanonicalize", module);
  EXPECT_EQ(count_calls(plain, "fixed_point_multiply"), 0);
  EXPECT_EQ(count_calls(plain, "clip"), 1);
}

}  // namespace
}  // namespace headrace::passes
