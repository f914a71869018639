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
                 "  (add(exp(%x), sum(%x, axis=[1], keepdims=True)), multiply(exp(%x), sum(%x, axis=[0])),"
                 " add(%x, 2f), abs(add(%x, 2f)))\n}",
                 {{2, 3}}},
        PassCase{"DynamicToStatic",
                 "dynamic_to_static",
                 "def @main(%x: Tensor[(2, 3, 4), float32], %w: Tensor[(3, 1), float32]) {\n"
                 "  %0 = shape_of(%x);\n"
                 "  %1 = take(%0, 0i64);\n"
                 "  %2 = reshape(%x, stack((%1, -1i64)));\n"
                 "  %3 = broadcast_to(%w, strided_slice(%0, begin=[1], end=[3]));\n"
                 "  %4 = strided_slice(%2, const(Tensor[(1), int64], [0]), take(%0, const(Tensor[(1), int64], [1])),"
                 " const(Tensor[(1), int64], [1]));\n"
                 "  %5 = full(2f, take(%0, const(Tensor[(2), int64], [0, 2])), dtype=\"float32\");\n"
                 "  (%2, %3, %4, tile(%w, const(Tensor[(2), int64], [1, 2])), multiply(%5, zeros_like(%5)), "
                 "reshape_like(%x, %2),"
                 " nn.pad(%w, const(Tensor[(2, 2), int64], [0, 1, 2, 0]), 1f))\n}",
                 {{2, 3, 4}, {3, 1}},
                 0},
        PassCase{"DeadCodeElimination",
                 "dead_code_elimination",
                 "def @unused(%x: float32) -> float32 { @also_unused(%x) }\n"
                 "def @also_unused(%x: float32) -> float32 { %x }\n"
                 "def @write(%r: ref(float32)) -> () { ref_write(%r, 2f) }\n"
                 "def @used(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { exp(%x) }\n"
                 "def @main(%x: Tensor[(2), float32]) {\n"
                 "  let %a = @used(%x);\n"
                 "  let %b = negative(%a);\n"
                 "  let %loop = fn (%i: float32) -> float32 { %loop(%i) };\n"
                 "  let %r = ref(1f);\n"
                 "  let %s = ref(%b);\n"
                 "  let %_ = @write(%r);\n"
                 "  let %c = @used(%x);\n"
                 "  add(%c, ref_read(%r))\n}",
                 {{2}},
                 0},
        PassCase{"SimplifyExpr",
                 "simplify_expr",
                 "def @main(%x: Tensor[(2, 1, 3), float32]) {\n"
                 "  %0 = add(0f, subtract(multiply(%x, 1f), 0f));\n"
                 "  %1 = multiply(2f, multiply(%0, const(Tensor[(3), float32], [0.5, 2, 4])));\n"
                 "  %2 = transpose(transpose(%1, axes=[1, 2, 0]), axes=[2, 0, 1]);\n"
                 "  %3 = reshape(squeeze(expand_dims(%2, axis=0), axis=[2]), newshape=[3, 2]);\n"
                 "  %4 = transpose(transpose(%3), axes=[0, 1]);\n"
                 "  %5 = cast(cast(cast(%4, dtype=\"float64\"), dtype=\"float32\"), dtype=\"float32\");\n"
                 "  %6 = concatenate((nn.pad(%5, 0f, pad_width=[[0, 0], [0, 0]]),), axis=1);\n"
                 "  %7 = strided_slice(%6, begin=[0, 0], end=[2, 3], strides=[1, 1]);\n"
                 "  %8 = add(add(nn.bias_add(%7, const(Tensor[(3), float32], [1, 2, 3])), 2f),"
                 " const(Tensor[(2, 1), float32], [1, 2]));\n"
                 "  %9 = tile(broadcast_to(%8, shape=[2, 3]), reps=[1, 1]);\n"
                 "  %10 = nn.relu(nn.relu(negative(negative(%9))));\n"
                 "  %11 = squeeze(squeeze(%x, axis=[1]), axis=[]);\n"
                 "  (%10, expand_dims(expand_dims(%11, axis=-1), axis=-1),"
                 " if (True) { copy(%11) } else { exp(%11) }, reshape(%x, newshape=[2, 1, 3]))\n}",
                 {{2, 1, 3}}},
        PassCase{"FoldScaleAxis",
                 "fold_scale_axis",
                 "def @main(%x: Tensor[(1, 2, 3, 3), float32], %y: Tensor[(1, 3), float32]) {\n"
                 "  %0 = nn.conv2d(%x, const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4]));\n"
                 "  %1 = nn.relu(add(%0, const(Tensor[(2, 1, 1), float32], [5, 6])));\n"
                 "  %2 = multiply(%1, const(Tensor[(2, 1, 1), float32], [0.5, 2]));\n"
                 "  %3 = nn.conv2d(%2, const(Tensor[(2, 1, 1, 1), float32], [1, -1]), groups=2,"
                 " data_layout=\"NCHW\");\n"
                 "  %4 = multiply(multiply(-2f, nn.bias_add(%3, const(Tensor[(2), float32], [1, 2]))),"
                 " const(Tensor[(1, 2, 1, 1), float32], [3, 4]));\n"
                 "  %5 = nn.dense(%y, const(Tensor[(2, 3), float32], [1, 2, 3, 4, 5, 6]));\n"
                 "  %6 = multiply(subtract(%5, const(Tensor[(2), float32], [1, 2])),"
                 " const(Tensor[(2), float32], [10, 100]));\n"
                 "  %7 = multiply(nn.relu(%5), 3f);\n"
                 "  %8 = nn.matmul(%y, const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, 6]));\n"
                 "  (%4, %6, %7, multiply(nn.relu(%8), -2f), multiply(nn.leaky_relu(nn.matmul(%y,"
                 " const(Tensor[(3, 1), float32], [1, 3, 5]))), 2f))\n}",
                 {{1, 2, 3, 3}, {1, 3}}}),
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
