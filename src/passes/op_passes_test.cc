// Passes that rewrite calls of ops: padding folded, casts copied, long concatenations split.
#include "passes/nn/split_args.h"
#include "passes/nn/to_mixed_precision.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

constexpr const char* kPads =
    "def @main(%x: Tensor[(1, 1, 4, 4), float32], %y: Tensor[(1, 4, 4, 1), float32]) {\n"
    "  %0 = nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 0], [2, 1]]);\n"
    "  %1 = nn.pad(%y, 0f, pad_width=[[0, 0], [1, 1], [0, 1], [0, 0]]);\n"
    "  %2 = nn.pad(%x, -inff, pad_width=[[0, 0], [0, 0], [1, 1], [0, 1]]);\n"
    "  (nn.conv2d(%0, const(Tensor[(1, 1, 3, 3), float32], [1, 2, 3, 4, 5, 6, 7, 8, 9]), padding=[0, 1]),\n"
    "   nn.conv2d(%1, const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4]), data_layout=\"NHWC\","
    " kernel_layout=\"HWIO\"),\n"
    "   nn.avg_pool2d(%0, pool_size=[3, 3]), nn.avg_pool2d(%0, pool_size=[3, 3], padding=[1, 1]),\n"
    "   nn.avg_pool2d(%0, pool_size=[3, 3], padding=[0, 0, 1, 1], count_include_pad=True),\n"
    "   nn.max_pool2d(%2, pool_size=[2, 2]), nn.max_pool2d(%0, pool_size=[2, 2]),\n"
    "   nn.max_pool2d(%2, pool_size=[1, 1]), nn.max_pool2d(%2, pool_size=[2, 2], strides=[2, 2], ceil_mode=True),\n"
    "   nn.conv2d(%0, const(Tensor[(1, 1, 2, 3), float32], [1, 2, 3, 4, 5, 6]), data_layout=\"NCWH\"),\n"
    "   nn.conv1d(nn.pad(reshape(%x, newshape=[1, 1, 16]), 0f, pad_width=[[0, 0], [0, 0], [2, 1]]),"
    " const(Tensor[(1, 1, 3), float32], [1, 2, 3])),\n"
    "   nn.conv3d(nn.pad(reshape(%x, newshape=[1, 1, 2, 2, 4]), 0f, pad_width=[[0, 0], [0, 0], [2, 1], [0, 1], [1, "
    "0]]),"
    " const(Tensor[(1, 1, 1, 2, 2), float32], [1, 2, 3, 4]), padding=[1]))\n"
    "}";

constexpr const char* kCasts =
    "def @main(%x: Tensor[(2, 2), float32]) {\n"
    "  %0 = cast(%x, dtype=\"float64\");\n"
    "  %1 = cast(%0, dtype=\"float32\");\n"
    "  (add(%0, %0), exp(%0), sum(%0), multiply(%0, 2f64), negative(%1), abs(%1))\n"
    "}";

constexpr const char* kManyArgs =
    "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {\n"
    "  (concatenate((%x, %y, %x, %y, exp(%x), %y, %x, %y, %x, %y)), stack((%x, %y, %x, %y, %x), axis=-1),"
    " concatenate((%x, %y, %x)))\n"
    "}";

constexpr const char* kMixed =
    "def @main(%x: Tensor[(1, 2, 3, 3), float32], %w: Tensor[(2, 2, 1, 1), float32]) -> (Tensor[(1, 2, 3, 3), float32],"
    " Tensor[(1, 1, 3, 3), float32], Tensor[(1, 2, 3, 3), float32], Tensor[(1, 4, 3, 3), float32], float32) {\n"
    "  let %c = nn.relu(nn.conv2d(%x, %w, out_dtype=\"float32\"));\n"
    "  %0 = add(%c, 0.5f);\n"
    "  %1 = split(%0, indices_or_sections=2, axis=1);\n"
    "  (add(%0, %x), %1.0, exp(%c), nn.relu(concatenate((%c, %0), axis=1)), sum(%c))\n"
    "}";

// Before, after and between; a depthwise one; what must stay: a negative scale under relu, a shared product.
constexpr const char* kScales =
    "def @main(%x: Tensor[(1, 2, 3, 3), float32], %y: Tensor[(2, 3), float32]) {\n"
    "  %0 = nn.conv2d(multiply(%x, const(Tensor[(2, 1, 1), float32], [2, -3])),"
    " const(Tensor[(1, 2, 1, 1), float32], [1, 10]));\n"
    "  %1 = nn.pad(nn.relu(multiply(const(Tensor[(1, 2, 1, 1), float32], [2, 3]), %x)), 0f,"
    " pad_width=[[0, 0], [0, 0], [1, 1], [0, 0]]);\n"
    "  %2 = nn.conv2d(%1, const(Tensor[(2, 1, 1, 1), float32], [1, 10]), groups=2);\n"
    "  %3 = nn.dense(nn.relu(multiply(%y, -1f)), const(Tensor[(1, 3), float32], [1, 2, 3]));\n"
    "  %4 = nn.dense(multiply(%y, const(Tensor[(3), float32], [1, 2, 4])), const(Tensor[(2, 3), float32],"
    " [1, 2, 3, 4, 5, 6]));\n"
    "  %5 = multiply(%y, 2f);\n"
    "  %6 = nn.conv2d(nn.max_pool2d(multiply(%x, 0.5f), pool_size=[2, 2]), const(Tensor[(1, 2, 1, 1), float32],"
    " [1, 10]));\n"
    "  (multiply(%0, 4f), %2, %3, %4, nn.dense(%5, const(Tensor[(1, 3), float32], [1, 2, 3])), %5, %6)\n"
    "}";

class OpPass : public testing::TestWithParam<PassCase> {};

TEST_P(OpPass, TextAndResults) {
  pass::PassContext context = typed_context();
  context.opt_level = 4;
  context.config.set("relay.SplitArgs.max_function_args", Value(4));
  check_pass(GetParam(), context);
}

INSTANTIATE_TEST_SUITE_P(
    Passes, OpPass,
    testing::Values(PassCase{"FoldExplicitPadding", "fold_explicit_padding", kPads, {{1, 1, 4, 4}, {1, 4, 4, 1}}, 0},
                    PassCase{"CanonicalizeCast", "canonicalize_cast", kCasts, {{2, 2}}, 0},
                    PassCase{"ForwardFoldScaleAxis", "forward_fold_scale_axis", kScales, {{1, 2, 3, 3}, {2, 3}}, 1e-5},
                    PassCase{
                        "BackwardFoldScaleAxis", "backward_fold_scale_axis", kScales, {{1, 2, 3, 3}, {2, 3}}, 1e-5},
                    PassCase{"ToMixedPrecision", "to_mixed_precision", kMixed, {{1, 2, 3, 3}, {2, 2, 1, 1}}, 4e-3},
                    PassCase{"SplitArgs", "split_args", kManyArgs, {{2}, {2}}, 0}),
    [](const auto& info) { return std::string(info.param.pass); });

int count_ops(const IRModule& module, std::string_view op) {
  int count = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    count += call != nullptr && call->as_op() != nullptr && call->as_op()->name == op ? 1 : 0;
  });
  return count;
}

// What reads a scaled tensor or lets a scale through, and how many multiplications are left of one.
struct ScaleCase {
  const char* name;
  std::vector<Shape> inputs;
  const char* body;
  int forward = 0;   // multiplications after ForwardFoldScaleAxis
  int backward = 1;  // after BackwardFoldScaleAxis
};

void PrintTo(const ScaleCase& c, std::ostream* out) { *out << c.body; }

class ScaleFolding : public testing::TestWithParam<ScaleCase> {};

TEST_P(ScaleFolding, LeavesThatManyAndTheSameResults) {
  const ScaleCase& c = GetParam();
  std::vector<std::string> params;
  std::vector<NDArray> args;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    params.push_back(fmt::format("%x{}: Tensor[({}), float32]", i, fmt::join(c.inputs[i], ", ")));
    args.push_back(ramp(c.inputs[i], -0.75f));
  }
  const IRModule before = read(fmt::format("def @main({}) {{ {} }}", fmt::join(params, ", "), c.body));
  ASSERT_EQ(count_ops(before, "multiply"), 1);
  for (const auto& [pass, left] :
       {std::pair("ForwardFoldScaleAxis", c.forward), {"BackwardFoldScaleAxis", c.backward}}) {
    const IRModule after = run_pass(pass, before);
    EXPECT_EQ(count_ops(after, "multiply"), left) << pass << "\n" << relay::print_module(after);
    expect_same_results(before, after, args, 1e-5);
  }
}

// Two and three factors that no mistaken axis leaves the result alone for.
#define TWO "const(Tensor[(2), float32], [10, 1000])"
#define TWO_ROWS "const(Tensor[(2, 1), float32], [10, 1000])"
#define TWO_PLANES "const(Tensor[(2, 1, 1), float32], [10, 1000])"
#define SQUARE "const(Tensor[(2, 2), float32], [1, 2, 3, 5])"
#define KERNEL "const(Tensor[(2, 2, 1, 2), float32], [1, 2, 3, 5, 7, 11, 13, 17])"

INSTANTIATE_TEST_SUITE_P(
    Scales, ScaleFolding,
    testing::Values(
        ScaleCase{"Dense", {{2, 2}}, "nn.dense(multiply(%x0, " TWO "), " SQUARE ")"},
        ScaleCase{"DenseOfThree", {{3, 2, 2}}, "nn.dense(multiply(%x0, " TWO "), " SQUARE ")"},
        ScaleCase{"DenseOfThreeByRows", {{3, 2, 2}}, "nn.dense(multiply(%x0, " TWO_ROWS "), " SQUARE ")", 1},
        ScaleCase{"Matmul", {{2, 2}}, "nn.matmul(multiply(%x0, " TWO "), " SQUARE ")"},
        ScaleCase{"MatmulOfThree", {{3, 2, 2}}, "nn.matmul(multiply(%x0, " TWO "), " SQUARE ")"},
        ScaleCase{"MatmulOfThreeByRows", {{1, 2, 2}}, "nn.matmul(multiply(%x0, " TWO_ROWS "), " SQUARE ")", 1},
        ScaleCase{"MatmulTransposed", {{2, 3}}, "nn.matmul(multiply(%x0, " TWO_ROWS "), " SQUARE ", transpose_a=True)"},
        ScaleCase{"MatmulOfThreeTransposed",
                  {{2, 2, 3}},
                  "nn.matmul(multiply(%x0, " TWO_ROWS "), " SQUARE ", transpose_a=True, transpose_b=True)"},
        ScaleCase{"MatmulOfThreeTransposedByBatch",
                  {{2, 2, 3}},
                  "nn.matmul(multiply(%x0, " TWO_PLANES "), " SQUARE ", transpose_a=True)",
                  1},
        ScaleCase{"ConvTranspose", {{1, 2, 3, 3}}, "nn.conv2d_transpose(multiply(%x0, " TWO_PLANES "), " KERNEL ")"},
        ScaleCase{"ConvThroughAveragePool",
                  {{1, 2, 3, 4}},
                  "nn.conv2d(nn.avg_pool2d(multiply(%x0, " TWO_PLANES "), pool_size=[2, 2], padding=[1, 1]), " KERNEL
                  ")"},
        ScaleCase{"ConvThroughGlobalPool",
                  {{1, 2, 3, 2}},
                  "nn.dense(nn.batch_flatten(nn.global_avg_pool2d(multiply(%x0, " TWO_PLANES "))), " SQUARE ")",
                  1},
        ScaleCase{"ConvThroughGlobalPoolAndPad",
                  {{1, 2, 3, 2}},
                  "nn.conv2d(nn.pad(nn.global_avg_pool2d(multiply(%x0, " TWO_PLANES ")), 0f,"
                  " pad_width=[[0, 0], [0, 0], [0, 0], [1, 1]]), " KERNEL ")"},
        ScaleCase{"AfterMatmul", {{3, 2, 2}}, "multiply(nn.matmul(%x0, " SQUARE "), " TWO ")", 1, 0},
        ScaleCase{"AfterMatmulTransposed",
                  {{3, 2, 2}},
                  "multiply(nn.matmul(%x0, " SQUARE ", transpose_a=True, transpose_b=True), " TWO ")",
                  1,
                  0},
        ScaleCase{"AfterMatmulByRows", {{3, 2, 2}}, "multiply(nn.matmul(%x0, " SQUARE "), " TWO_ROWS ")", 1, 1},
        ScaleCase{"AfterDense", {{3, 2, 2}}, "multiply(nn.leaky_relu(nn.dense(%x0, " SQUARE ")), " TWO ")", 1, 0},
        ScaleCase{"AfterConvTranspose",
                  {{1, 2, 3, 3}},
                  "multiply(nn.relu(nn.conv2d_transpose(%x0, " KERNEL ")), " TWO_PLANES ")",
                  1,
                  0}),
    [](const auto& info) { return std::string(info.param.name); });

#undef TWO
#undef TWO_ROWS
#undef TWO_PLANES
#undef SQUARE
#undef KERNEL

// Packed data stays in the small type from convolution to convolution.
TEST(ToMixedPrecision, LayoutTransformsFollow) {
  const IRModule after = run_pass(
      "ToMixedPrecision", read("def @main(%x: Tensor[(1, 2, 2, 2), float32], %w: Tensor[(2, 2, 1, 1), float32]) {\n"
                               "  layout_transform(nn.conv2d(%x, %w), src_layout=\"NCHW\", dst_layout=\"NCHW2c\")\n}"));
  const std::string text = relay::print_module(after);
  const size_t transform = text.find("layout_transform"), back = text.rfind("dtype=\"float32\"");
  ASSERT_NE(transform, std::string::npos) << text;
  ASSERT_NE(back, std::string::npos) << text;
  EXPECT_LT(transform, back) << text;
}

// What FuseOps made is compiled as it stands.
TEST(ToMixedPrecision, LeavesUnitsAlone) {
  const IRModule fused =
      run_pass("FuseOps", read("def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) {\n"
                               "  nn.relu(nn.dense(%x, %w))\n"
                               "}"));
  EXPECT_EQ(relay::print_module(run_pass("ToMixedPrecision", fused)), relay::print_module(fused));
}

TEST(ToMixedPrecision, TheTypeIsAnOption) {
  pass::PassContext context = typed_context();
  context.config.set("relay.ToMixedPrecision.mixed_precision_type", Value("bfloat16"));
  const IRModule before = read(kMixed), after = run_pass("ToMixedPrecision", before, context);
  EXPECT_NE(relay::print_module(after).find("bfloat16"), std::string::npos);
  expect_same_results(before, after, {ramp({1, 2, 3, 3}, 0.5f), ramp({2, 2, 1, 1}, 0.5f)}, 4e-2);
  context.config.set("relay.ToMixedPrecision.mixed_precision_type", Value("int8"));
  try {
    mixed_precision_options(context);
    FAIL() << "no error";
  } catch (const UserError& e) {
    EXPECT_EQ(e.message(),
              "relay.ToMixedPrecision.mixed_precision_type must be \"float16\" or \"bfloat16\", got \"int8\"");
  }
}

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
