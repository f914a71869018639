// Each pass: a golden text in tests/, and the interpreter before and after.
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

class GoldenPass : public testing::TestWithParam<PassCase> {};

TEST_P(GoldenPass, TextAndResults) { check_pass(GetParam()); }

INSTANTIATE_TEST_SUITE_P(
    Passes, GoldenPass,
    testing::Values(
        PassCase{"SimplifyInference",
                 "simplify_inference",
                 "def @main(%x: Tensor[(1, 3, 2, 2), float32], %g: Tensor[(3), float32], %b: Tensor[(3), float32],"
                 " %m: Tensor[(3), float32], %v: Tensor[(3), float32]) {\n"
                 "  %0 = nn.batch_norm(%x, %g, %b, %m, %v, epsilon=0.01f);\n"
                 "  %1 = nn.dropout(%0.0);\n"
                 "  nn.relu(%1.0)\n}",
                 {{1, 3, 2, 2}, {3}, {3}, {3}, {3}}},
        PassCase{"FoldConstant",
                 "fold_constant",
                 "def @main(%x: Tensor[(2, 3), float32]) {\n"
                 "  %0 = add(1f, 2f);\n"
                 "  %1 = multiply(%x, %0);\n"
                 "  %2 = (%1, exp(0f));\n"
                 "  (%2.1, add(%2.0, %0), shape_of(%x))\n}",
                 {{2, 3}}},
        PassCase{"EliminateCommonSubexpr",
                 "eliminate_common_subexpr",
                 "def @main(%x: Tensor[(2, 3), float32]) {\n"
                 "  (add(exp(%x), sum(%x, axis=[1], keepdims=True)), multiply(exp(%x), sum(%x, axis=[0])))\n}",
                 {{2, 3}}}),
    [](const auto& info) { return std::string(info.param.pass); });

TEST(FoldConstant, LeavesWhatDependsOnAnInput) {
  const IRModule before = read("def @main(%x: Tensor[(2), float32]) { add(%x, negative(%x)) }");
  EXPECT_EQ(run_pass("FoldConstant", before)->lookup("main"), before->lookup("main"));
}

TEST(EliminateCommonSubexpr, DifferentAttributesStay) {
  const IRModule before = read("def @main(%x: Tensor[(2, 2), float32]) { (sum(%x, axis=[0]), sum(%x, axis=[1])) }");
  EXPECT_EQ(run_pass("EliminateCommonSubexpr", before)->lookup("main"), before->lookup("main"));
}

}  // namespace
}  // namespace headrace::passes
