// Tests which ops BackwardFoldScaleAxis and ForwardFoldScaleAxis fold a scale into, and which ops let one through.
#include "ops/nn/matmul.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "passes/scale/backward_fold_scale_axis.h"
#include "passes/tests/pass_testing.h"

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

TEST(FoldScaleAxis, FreesLargeWeightsAsItGoes) {
  std::vector<std::string> log;
  const auto x = relay::make_var("x", make_tensor_type(Shape{1, 512}, DataType::float_(32)));
  const Expr scale = relay::make_constant(NDArray::from_vector<float>({1}, DataType::float_(32), {3.0F}));
  const auto scaled = [&](const Expr& data, const char* name) {
    return ops::multiply(ops::dense(data, logged_constant(log, name)), scale);
  };
  IRModule module = typed_main({x}, scaled(ops::relu(scaled(x, "a")), "b"));
  const IRModule folded = backward_fold_scale_axis(std::move(module), typed_context(), false);
  log.push_back("done");
  EXPECT_EQ(log, (std::vector<std::string>{"free a", "free b", "done"}));
  EXPECT_EQ(count_calls(folded, "multiply"), 0);
  const auto* weights = main_of(folded).body.as<relay::CallNode>()->args[1].as<relay::ConstantNode>();
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(weights->data.data<float>()[1000], 6.0F);
}

// Weights that no scale moves into stay those of the program.
TEST(FoldScaleAxis, PutsLargeWeightsBack) {
  std::vector<std::string> log;
  const auto x = relay::make_var("x", make_tensor_type(Shape{1, 512}, DataType::float_(32)));
  const Expr constant = logged_constant(log, "a");
  IRModule module = typed_main({x}, ops::dense(x, constant));
  const IRModule folded = backward_fold_scale_axis(std::move(module), typed_context(), false);
  EXPECT_EQ(main_of(folded).body.as<relay::CallNode>()->args[1], constant);
}

}  // namespace
}  // namespace headrace::passes
