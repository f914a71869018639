// Passes that rewrite calls of ops: padding folded, casts copied, long concatenations split.
#include <set>

#include "passes/nn/precision_lists.h"
#include "passes/nn/split_args.h"
#include "passes/nn/to_mixed_precision.h"
#include "passes/tests/golden_pass.h"

namespace headrace::passes {
namespace {

// An op that reads a scaled tensor or passes the scale on, and the number of multiplications left of one.
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
  ASSERT_EQ(count_calls(before, "multiply"), 1);
  for (const auto& [pass, left] :
       {std::pair("ForwardFoldScaleAxis", c.forward), {"BackwardFoldScaleAxis", c.backward}}) {
    const IRModule after = run_pass(pass, before);
    EXPECT_EQ(count_calls(after, "multiply"), left) << pass << "\n" << relay::print_module(after);
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

// An op whose result is never float32 is never asked.
bool gives_no_floats(const std::string& op) {
  static const std::set<std::string> kNames{"all",
                                            "any",
                                            "argmax",
                                            "argmin",
                                            "argsort",
                                            "argwhere",
                                            "bitwise_and",
                                            "bitwise_not",
                                            "bitwise_or",
                                            "bitwise_xor",
                                            "equal",
                                            "argwhere_bounded",
                                            "greater",
                                            "isfinite",
                                            "greater_equal",
                                            "isinf",
                                            "isnan",
                                            "invert_permutation",
                                            "left_shift",
                                            "less",
                                            "less_equal",
                                            "logical_and",
                                            "logical_not",
                                            "logical_or",
                                            "logical_xor",
                                            "not_equal",
                                            "ndarray_size",
                                            "right_shift",
                                            "searchsorted",
                                            "shape_of",
                                            "unravel_index",
                                            "random.threefry_generate",
                                            "random.threefry_split"};
  return kNames.contains(op);
}

TEST(ToMixedPrecision, KnowsEveryOp) {
  ops::register_all_ops();
  for (const std::string& op : op_names()) {
    if (op.starts_with("test.") || op.starts_with("facts.")) continue;  // of other tests
    const auto category = precision_category(relay::make_call(op, {}), DataType::float_(16));
    EXPECT_NE(category.has_value(), gives_no_floats(op)) << op;
  }
}

TEST(ToMixedPrecision, WindowsOfAnyRankAreAlike) {
  const IRModule after =
      run_pass("ToMixedPrecision", read("def @main(%x: Tensor[(1, 2, 8), float32], %w: Tensor[(2, 2, 3), float32]) {\n"
                                        "  nn.max_pool1d(nn.conv1d(%x, %w), pool_size=[2])\n}"));
  EXPECT_EQ(relay::print_module(after),
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(1, 2, 8), float32], %w: Tensor[(2, 2, 3), float32]) {\n"
            "  %0 = cast(%x, dtype=\"float16\");\n"
            "  %1 = cast(%w, dtype=\"float16\");\n"
            "  %2 = nn.conv1d(%0, %1);\n"
            "  %3 = nn.max_pool1d(%2, pool_size=[2]);\n"
            "  cast(%3, dtype=\"float32\")\n"
            "}\n");
}

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

// Groups made by FuseOps are compiled as they are.
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
  const IRModule before = relay::infer_type(program_before(read_golden("to_mixed_precision"))),
                 after = run_pass("ToMixedPrecision", before, context);
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
