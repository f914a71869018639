// FirstOrderGradient against differences of the function itself, computed in float64.
#include "passes/gradient/first_order_gradient.h"

#include "kit/property.h"
#include "kit/relay_programs.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

// The tensors of a value in order, tuples flattened.
void flatten(const Value& value, std::vector<NDArray>& out) {
  if (value.is<NDArray>()) {
    out.push_back(value.as<NDArray>());
    return;
  }
  const auto* tuple = value.as_node<ADTObj>();
  ASSERT_NE(tuple, nullptr);
  for (const Value& item : tuple->items) flatten(item, out);
}

std::vector<NDArray> run64(const IRModule& module, const std::vector<NDArray>& args) {
  const std::vector<Value> values(args.begin(), args.end());
  std::vector<NDArray> out;
  flatten(interp::run(module, "main", values, {.precision = interp::Precision::float64}), out);
  return out;
}

double total(const std::vector<NDArray>& tensors) {
  double sum = 0;
  for (const NDArray& tensor : tensors) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) sum += element_as_double(tensor.tensor(), i);
  }
  return sum;
}

// How far the gradients are from central differences, at each input element; `step` keeps float32 inputs exact.
double worst_error(const IRModule& before, const IRModule& after, const std::vector<NDArray>& args) {
  constexpr double kStep = 1.0 / 4096;
  const auto results = run64(after, args);
  const size_t first = results.size() - args.size();
  double worst = 0;
  for (size_t a = 0; a < args.size(); ++a) {
    for (int64_t i = 0; i < args[a].num_elements(); ++i) {
      const double x = element_as_double(args[a].tensor(), i);
      set_element(args[a].tensor(), i, x + kStep);
      const double above = total(run64(before, args));
      set_element(args[a].tensor(), i, x - kStep);
      const double below = total(run64(before, args));
      set_element(args[a].tensor(), i, x);
      const double want = (above - below) / (2 * kStep), got = element_as_double(results[first + a].tensor(), i);
      worst = std::max(worst, std::abs(want - got) / std::max(1.0, std::abs(want)));
    }
  }
  return worst;
}

TEST(FirstOrderGradient, TextAndResults) {
  const IRModule before = read(
      "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(1, 3), float32]) -> Tensor[(2, 1), float32] {\n"
      "  let %h = tanh(nn.dense(%x, %w));\n"
      "  multiply(%h, add(%h, 1f))\n}");
  const IRModule after = run_pass("FirstOrderGradient", before);
  EXPECT_TRUE(kit::matches_golden(std::string(HEADRACE_SOURCE_DIR) + "/src/passes/tests/first_order_gradient.relay",
                                  relay::print_module(after)));
  EXPECT_LT(worst_error(before, after, {ramp({2, 3}, -0.5f), ramp({1, 3}, 0.25f)}), 1e-5);
}

struct GradientCase {
  const char* name;
  const char* body;
};
void PrintTo(const GradientCase& c, std::ostream* out) { *out << c.body; }

class GradientRuleTest : public testing::TestWithParam<GradientCase> {};

TEST_P(GradientRuleTest, AgreesWithDifferences) {
  const IRModule before = read(fmt::format(
      "def @main(%x: Tensor[(2, 3), float32], %y: Tensor[(3), float32], %i: Tensor[(1, 2, 5, 4), float32],"
      " %k: Tensor[(3, 2, 3, 2), float32], %b: Tensor[(2, 3, 2), float32], %c: Tensor[(2, 2, 2), float32]) {{ {} }}",
      GetParam().body));
  const IRModule after = run_pass("FirstOrderGradient", before);
  kit::Random random(7);
  std::vector<NDArray> args;
  for (const Shape& shape :
       {Shape{2, 3}, Shape{3}, Shape{1, 2, 5, 4}, Shape{3, 2, 3, 2}, Shape{2, 3, 2}, Shape{2, 2, 2}}) {
    NDArray data = NDArray::empty(shape, DataType::float_(32));
    for (int64_t i = 0; i < data.num_elements(); ++i)
      data.data<float>()[i] = 0.25f * std::round(random.uniform(0.5f, 9)) + 0.0625f;  // no ties, no kinks, positive
    args.push_back(data);
  }
  EXPECT_LT(worst_error(before, after, args), 1e-5) << relay::print_module(after);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, GradientRuleTest,
    testing::Values(
        GradientCase{"Add", "multiply(add(%x, %y), %x)"}, GradientCase{"Subtract", "multiply(subtract(%y, %x), %x)"},
        GradientCase{"Multiply", "multiply(multiply(%x, %y), %y)"}, GradientCase{"Divide", "divide(%x, %y)"},
        GradientCase{"PowerConstant", "power(%x, 3f)"}, GradientCase{"Power", "power(%x, divide(%y, 4f))"},
        GradientCase{"Maximum", "multiply(maximum(%x, add(%y, 0.01f)), %x)"},
        GradientCase{"Minimum", "multiply(minimum(%x, add(%y, 0.01f)), %x)"},
        GradientCase{"Where", "where(less(%x, 1f), multiply(%x, %x), %y)"},
        GradientCase{"BiasAdd", "multiply(nn.bias_add(%x, %y), %x)"}, GradientCase{"Exp", "exp(negative(%x))"},
        GradientCase{"Log", "log(%x)"}, GradientCase{"Sqrt", "sqrt(%x)"}, GradientCase{"Rsqrt", "rsqrt(%x)"},
        GradientCase{"Tanh", "tanh(%x)"}, GradientCase{"Sigmoid", "sigmoid(%x)"}, GradientCase{"Sin", "sin(%x)"},
        GradientCase{"Cos", "cos(%x)"}, GradientCase{"Erf", "erf(%x)"}, GradientCase{"Abs", "abs(subtract(%x, 1f))"},
        GradientCase{"Relu", "nn.relu(subtract(%x, 1f))"},
        GradientCase{"LeakyRelu", "nn.leaky_relu(subtract(%x, 1f), alpha=0.1f)"},
        GradientCase{"Clip", "multiply(clip(%x, a_min=0.5f, a_max=1.5f), %x)"},
        GradientCase{"StopFusion", "annotation.stop_fusion(multiply(%x, %x))"},
        GradientCase{"Checkpoint", "exp(annotation.checkpoint(multiply(%x, %x)))"},
        GradientCase{"CopyAndCast", "cast(copy(multiply(%x, %x)), dtype=\"float64\")"},
        GradientCase{"Steps", "multiply(add(add(floor(%x), ceil(%x)), add(round(%x), add(trunc(%x), sign(%x)))), %x)"},
        GradientCase{"Softmax", "multiply(nn.softmax(%x, axis=0), %y)"},
        GradientCase{"LogSoftmax", "multiply(nn.log_softmax(%x), %y)"},
        GradientCase{"Views",
                     "multiply(squeeze(expand_dims(reshape(%x, newshape=[3, 2]), axis=1), axis=[1]),"
                     " reshape(exp(%x), newshape=[3, 2]))"},
        GradientCase{"Flatten", "multiply(nn.batch_flatten(%b), nn.batch_flatten(%b))"},
        GradientCase{"Transpose", "multiply(transpose(%b, axes=[1, 2, 0]), transpose(%b, axes=[1, 0, 2]))"},
        GradientCase{"TransposeAll", "multiply(transpose(%x), expand_dims(%y, axis=1))"},
        GradientCase{"BroadcastTo", "multiply(broadcast_to(%y, shape=[2, 3]), %x)"},
        GradientCase{"Reverse", "multiply(reverse(%x, axis=1), %y)"},
        GradientCase{"Concatenate", "multiply(concatenate((%x, exp(%x), %x), axis=1), 2f)"},
        GradientCase{"Split", "%0 = split(exp(%x), indices_or_sections=3, axis=1); multiply(%0.0, %0.2)"},
        GradientCase{"Pad", "multiply(nn.pad(%x, 1f, pad_width=[[1, 0], [0, 2]]), 3f)"},
        GradientCase{"Slice", "multiply(strided_slice(%x, begin=[-1], end=[3], axes=[1]), 3f)"},
        GradientCase{"Sum", "multiply(sum(%x, axis=[0]), %y)"}, GradientCase{"SumAll", "exp(multiply(sum(%x), 0.1f))"},
        GradientCase{"Mean", "multiply(mean(%b, axis=[1], keepdims=True), %c)"},
        GradientCase{"MeanExclude", "exp(mean(%b, axis=[1], exclude=True))"},
        GradientCase{"Max", "multiply(max(add(%x, multiply(%y, 0.01f)), axis=[1]), 2f)"},
        GradientCase{"Min", "exp(min(add(%x, multiply(%y, 0.01f)), axis=[1], keepdims=True))"},
        GradientCase{"Dense", "exp(multiply(nn.dense(%x, add(%x, 1f)), 0.1f))"},
        GradientCase{"DenseOfThree", "multiply(nn.dense(%b, reshape(%x, newshape=[3, 2])), 2f)"},
        GradientCase{"Matmul", "nn.matmul(%x, transpose(exp(%x)))"},
        GradientCase{"MatmulTransposed", "nn.matmul(exp(%x), %x, transpose_a=True)"},
        GradientCase{"MatmulTransposedB", "nn.matmul(exp(%x), %x, transpose_b=True)"},
        GradientCase{"MatmulOfThree", "nn.matmul(exp(%b), exp(%x))"},
        GradientCase{"MatmulOfThreeTransposed", "nn.matmul(exp(%b), reshape(%x, newshape=[3, 2]), transpose_a=True)"},
        GradientCase{"MatmulOfAVector", "nn.matmul(%y, exp(%x), transpose_b=True)"},
        GradientCase{"BatchMatmul", "nn.batch_matmul(%b, %c)"},
        GradientCase{"BatchMatmulTransposed", "nn.batch_matmul(%b, exp(%b), transpose_a=True, transpose_b=False)"},
        GradientCase{"Conv", "multiply(nn.conv2d(%i, %k), 0.1f)"},
        GradientCase{"ConvStrided", "tanh(multiply(nn.conv2d(%i, %k, strides=[2, 3], padding=[1, 0, 2, 1]), 0.01f))"},
        GradientCase{"ConvDilated", "nn.conv2d(%i, %k, dilation=[2, 2], padding=[1, 1])"},
        GradientCase{"ConvDepthwise",
                     "exp(multiply(nn.conv2d(%i, reshape(%k, newshape=[6, 1, 3, 2]), groups=2), 0.1f))"},
        GradientCase{"ConvGroups",
                     "%0 = concatenate((%i, multiply(%i, %i)), axis=1); %1 = concatenate((%k, exp(%k)), axis=0);"
                     " tanh(multiply(nn.conv2d(%0, %1, strides=[2, 1], padding=[1, 0, 2, 1], dilation=[1, 2], "
                     "groups=2), 0.01f))"},
        GradientCase{"ConvNHWC",
                     "%0 = transpose(%i, axes=[0, 2, 3, 1]); %1 = transpose(%k, axes=[2, 3, 1, 0]);"
                     " tanh(multiply(nn.conv2d(%0, %1, strides=[2, 1], padding=[1, 0, 2, 1], data_layout=\"NHWC\", "
                     "kernel_layout=\"HWIO\", out_layout=\"NCHW\"), 0.01f))"},
        GradientCase{"GlobalAvgPool", "exp(nn.global_avg_pool2d(%i))"},
        GradientCase{"MaxPool",  // no two elements of a window are equal
                     "exp(nn.max_pool2d(add(add(%i, const(Tensor[(5, 1), float32], [0, 0.01, 0.02, 0.03, 0.04])), "
                     "const(Tensor[(4), float32], [0, 0.03, 0.06, 0.09])), pool_size=[2, 3], padding=[1, 0, 0, 1]))"},
        GradientCase{"AvgPool", "exp(nn.avg_pool2d(%i, pool_size=[2, 2], strides=[2, 1], padding=[1, 1]))"},
        GradientCase{"TupleResult", "let %t = (exp(%x), %y); (%t.0, (multiply(%t.1, %t.1), %t.0))"}),
    [](const auto& info) { return std::string(info.param.name); });

std::string gradient_error(const char* text) {
  try {
    first_order_gradient(read(text));
  } catch (const UserError& e) {
    return e.message();
  }
  return "no error";
}

TEST(FirstOrderGradient, WhatItDoesNotKnow) {
  EXPECT_EQ(gradient_error("def @main(%x: Tensor[(2), float32]) { atan(%x) }"), "atan: the op has no gradient");
  EXPECT_EQ(gradient_error("def @main(%x: float32) { if (less(%x, 0f)) { %x } else { exp(%x) } }"),
            "FirstOrderGradient knows op calls and tuples only, here is a relay.If");
  EXPECT_EQ(gradient_error("def @main(%x: Tensor[(n), float32]) { exp(%x) }"),
            "a gradient needs tensors of static shape, got Tensor[(n), float32]");
  EXPECT_EQ(gradient_error("def @main(%x: Tensor[(1, 1, 2, 2, 2), float32]) {"
                           " nn.conv2d(%x, ones(shape=[2, 2, 1, 1]), data_layout=\"NCHW2c\") }"),
            "nn.conv2d: there is no gradient in layout NCHW2c, which has axes in parts; see ConvertLayout");
}

TEST(FirstOrderGradient, IntegersHaveNone) {
  const IRModule after =
      run_pass("FirstOrderGradient", read("def @main(%x: Tensor[(2), float32], %i: Tensor[(2), int32]) {"
                                          " multiply(%x, cast(%i, dtype=\"float32\")) }"));
  const NDArray indices = NDArray::from_vector<int32_t>({2}, DataType::int_(32), {3, 4});
  const auto results = run64(after, {ramp({2}, 1), indices});
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(element_as_double(results[1].tensor(), 1), 4.0);
  EXPECT_EQ(element_as_double(results[2].tensor(), 1), 0.0);
}

TEST(FirstOrderGradient, RandomProgramsAgreeWithDifferences) {
  int differentiated = 0;
  for (uint64_t seed = 0; seed < 40; ++seed) {
    IRModule before = kit::random_program(seed, {.steps = 3, .control_flow = false, .shape_arithmetic = false});
    before = run_pass("RemoveUnusedFunctions", run_pass("SimplifyInference", before));
    IRModule after;
    try {
      after = run_pass("FirstOrderGradient", before);
    } catch (const UserError&) {
      continue;  // an op that has no rule
    }
    kit::Random random(seed);
    // A kink within the step of a difference shows as an error of its share.
    EXPECT_LT(worst_error(before, after, kit::random_inputs(before, random)), 2e-2) << "seed " << seed << "\n"
                                                                                    << relay::print_module(before);
    ++differentiated;
  }
  EXPECT_GE(differentiated, 12);
}

}  // namespace
}  // namespace headrace::passes
