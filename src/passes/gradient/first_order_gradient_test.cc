// FirstOrderGradient against differences of the function itself, computed in float64.
#include "passes/gradient/first_order_gradient.h"

#include <map>
#include <set>

#include "kit/errors.h"
#include "kit/options.h"
#include "kit/relay_programs.h"
#include "object/function.h"
#include "ops/tensor/reduce.h"
#include "passes/gradient/gradient_rules.h"
#include "passes/tests/golden_pass.h"
#include "passes/tests/gradient_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

TEST(FirstOrderGradient, TextAndResults) {
  const GoldenPass golden = read_golden("first_order_gradient");
  const IRModule before = relay::infer_type(program_before(golden)), after = run_pass(golden.pass, before);
  expect_becomes(golden, after);
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
        GradientCase{"StepsToEven", "multiply(nearbyint(%x), %x)"},
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

std::string gradient_error(const std::string& text) {
  try {
    first_order_gradient(read(text));
  } catch (const UserError& e) {
    return e.message();
  }
  return "no error";
}

TEST(FirstOrderGradient, OpsWithoutAGradient) {
  EXPECT_EQ(gradient_error("def @main(%x: Tensor[(1, 1, 4, 4, 4), float32]) { nn.max_pool3d(%x) }"),
            "nn.max_pool3d: the op has no gradient; give it one as its FPrimalGradient: in Python "
            "relay.op.register_gradient(\"nn.max_pool3d\", function)");
  EXPECT_EQ(
      gradient_error("def @main(%x: float32) { if (less(%x, 0f)) { %x } else { exp(%x) } }"),
      "FirstOrderGradient supports calls of ops, tuples, and calls of functions that do not call themselves; this is "
      "a relay.If; `where` chooses between values that both are computed");
  EXPECT_EQ(
      gradient_error("def @main(%x: float32) { ref_read(ref(%x)) }"),
      "FirstOrderGradient supports calls of ops, tuples, and calls of functions that do not call themselves; this is "
      "a relay.RefRead");
  EXPECT_EQ(gradient_error("def @main(%x: Tensor[(n), float32]) { prod(%x) }"),
            "a gradient here needs tensors of static shape, got Tensor[(n), float32]");
  EXPECT_EQ(gradient_error("def @main(%x: ((float32, float32), float32)) { %x.1 }"),
            "a parameter must be a tensor or a tuple of tensors, got ((float32, float32), float32)");
  EXPECT_EQ(gradient_error("def @main(%x: Tensor[(1, 1, 2, 2, 2), float32], %k: Tensor[(2, 2, 1, 1), float32]) {"
                           " nn.conv2d(%x, %k, data_layout=\"NCHW2c\") }"),
            "nn.conv2d: there is no gradient in layout NCHW2c, which has axes in parts; see ConvertLayout");
}

TEST(FirstOrderGradient, FunctionsThatCallThemselvesAreRefused) {
  const std::string knows =
      "FirstOrderGradient supports calls of ops, tuples, and calls of functions that do not call themselves; this is ";
  EXPECT_EQ(gradient_error("def @f(%x: float32) -> float32 { @f(exp(%x)) }\ndef @main(%x: float32) { @f(%x) }"),
            knows + "a call of @f, which calls itself or is not for passes to change");
  EXPECT_EQ(gradient_error("def @main(%x: float32) {\n"
                           "  let %f: fn (float32) -> float32 = fn (%a: float32) -> float32 { %f(exp(%a)) };\n"
                           "  %f(%x)\n}"),
            knows + "a let of a function that calls itself, or of a value that has effects");
}

// Each calls the next twice: 2^40 bodies if it were done to the end.
TEST(FirstOrderGradient, TooManyCallsAreRefused) {
  std::string text;
  for (int i = 0; i < 40; ++i)
    text += fmt::format("def @f{}(%x: float32) -> float32 {{ add(@f{}(%x), @f{}(exp(%x))) }}\n", i, i + 1, i + 1);
  text += "def @f40(%x: float32) -> float32 { %x }\ndef @main(%x: float32) -> float32 { @f0(%x) }";
  EXPECT_EQ(gradient_error(text),
            "FirstOrderGradient puts functions in the place of their calls, and there are too many calls to inline: "
            "they would add more than 200000 nodes; let the functions call each other less often");
}

TEST(FirstOrderGradient, OnlyWhatDependsOnParametersNeedsARule) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 1, 2, 2, 2), float32], %i: Tensor[(2), int32]) {\n"
      "  let %c = nn.max_pool3d(ones(shape=[1, 1, 4, 4, 4]), pool_size=[2, 2, 2], strides=[2, 2, 2]);\n"
      "  multiply(multiply(%x, %c), cast(sum(argsort(%i)), dtype=\"float32\"))\n}");
  const IRModule after = run_pass("FirstOrderGradient", before);
  const NDArray order = NDArray::from_vector<int32_t>({2}, DataType::int_(32), {4, 3});
  const auto results = run64(after, {ramp({1, 1, 2, 2, 2}, 1), order});
  EXPECT_EQ(element_as_double(results[1].tensor(), 7), 1.0);
}

TEST(FirstOrderGradient, GoesIntoFunctions) {
  const IRModule before = read(
      "def @half(%x: Tensor[(n), float32]) -> Tensor[(n), float32] { multiply(%x, 0.5f) }\n"
      "def @square(%x: Tensor[(2), float32]) -> Tensor[(2), float32] { multiply(@half(%x), %x) }\n"
      "def @twice(%f: fn (Tensor[(2), float32]) -> Tensor[(2), float32], %x: Tensor[(2), float32])"
      " -> Tensor[(2), float32] { %f(%f(%x)) }\n"
      "def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) {\n"
      "  let %h = cosh(%y);\n"
      "  let %f = fn (%a: Tensor[(2), float32]) { let %b = @square(%a); add(multiply(%b, %h), tanh(%a)) };\n"
      "  let %t = (%f(%x), @twice(%f, %y));\n"
      "  (@twice(@square, %t.0), %t.1)\n}");
  const IRModule after = run_pass("FirstOrderGradient", before);
  EXPECT_LT(worst_error(before, after, {ramp({2}, 0.5f), ramp({2}, -0.25f)}), 1e-5);
  // Other functions have their gradients too, but for those over functions.
  EXPECT_NE(to_string(after->lookup("square")->checked_type()), to_string(before->lookup("square")->checked_type()));
  EXPECT_EQ(to_string(after->lookup("twice")->checked_type()), to_string(before->lookup("twice")->checked_type()));
  // A captured value is computed once, however often the function is called.
  int captured = 0;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    captured += call != nullptr && call->as_op()->name == "cosh" ? 1 : 0;
  });
  EXPECT_EQ(captured, 1);
}

TEST(FirstOrderGradient, TuplesAsParametersAndResults) {
  const IRModule after =
      run_pass("FirstOrderGradient",
               read("def @main(%t: (Tensor[(2), float32], Tensor[(2), int32], Tensor[(2, 2), float32])) {\n"
                    "  let %p = ((%t.0, split(%t.2, indices_or_sections=2)), 1f);\n"
                    "  let %q = %p.0.1;\n"
                    "  (split(multiply(%p.0.0, 3f), indices_or_sections=2), multiply(%q.1, %t.0))\n}"));
  const auto t = Value(make_adt(0, {ramp({2}, 1), NDArray::zeros({2}, DataType::int_(32)), ramp({2, 2}, 2)}));
  std::vector<NDArray> results;
  flatten(interp::run(after, "main", std::vector<Value>{t}, {}), results);
  ASSERT_EQ(results.size(), 6u);  // three of the result, three gradients
  const auto values = [&](size_t i) {
    std::vector<double> list;
    for (int64_t k = 0; k < results[i].num_elements(); ++k) list.push_back(element_as_double(results[i].tensor(), k));
    return list;
  };
  EXPECT_EQ(values(3), (std::vector<double>{3 + 2.5, 3 + 2.75}));  // t.2 is 2, 2.25; 2.5, 2.75
  EXPECT_EQ(values(4), (std::vector<double>{0, 0}));
  EXPECT_EQ(values(5), (std::vector<double>{0, 0, 1, 1.25}));
}

class SymbolicShapesTest : public testing::TestWithParam<GradientCase> {};

TEST_P(SymbolicShapesTest, AgreesWithDifferences) {
  const IRModule before = read(
      fmt::format("def @main(%x: Tensor[(n, 3), float32], %y: Tensor[(1, 3), float32], %w: Tensor[(2, 3), float32],"
                  " %i: Tensor[(n, 1, 3, 2), float32], %k: Tensor[(2, 1, 2, 2), float32]) {{ {} }}",
                  GetParam().body));
  const IRModule after = run_pass("FirstOrderGradient", before);
  kit::Random random(3);
  std::vector<NDArray> args;
  for (const Shape& shape : {Shape{4, 3}, Shape{1, 3}, Shape{2, 3}, Shape{4, 1, 3, 2}, Shape{2, 1, 2, 2}}) {
    NDArray data = NDArray::empty(shape, DataType::float_(32));
    for (int64_t i = 0; i < data.num_elements(); ++i)
      data.data<float>()[i] = std::round(random.uniform(100, 900)) / 1024;
    args.push_back(data);
  }
  EXPECT_LT(worst_error(before, after, args), 1e-5) << relay::print_module(after);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, SymbolicShapesTest,
    testing::Values(
        GradientCase{"Broadcast", "multiply(add(%x, %y), exp(%x))"}, GradientCase{"Results", "(%x, exp(%x), %x)"},
        GradientCase{"Relu", "nn.relu(subtract(%x, 0.5f))"}, GradientCase{"Softmax", "multiply(nn.softmax(%x), %y)"},
        GradientCase{"Dense", "exp(nn.dense(%x, %w))"},
        GradientCase{"Matmul", "exp(nn.matmul(%x, %w, transpose_b=True))"},
        GradientCase{"MatmulTransposed", "exp(nn.matmul(transpose(%x), %w, transpose_a=True, transpose_b=True))"},
        GradientCase{"Reductions", "add(mean(%x, axis=[0]), multiply(sum(%x, axis=[1], keepdims=True), %y))"},
        GradientCase{"Max", "exp(max(%x, axis=[0]))"},
        GradientCase{"Variance", "variance(%x, mean(%x, axis=[0], keepdims=True), axis=[0])"},
        GradientCase{"LayerNorm", "exp(nn.layer_norm(%x, squeeze(%y, axis=[0]), ones(shape=[3]), epsilon=0.1f))"},
        GradientCase{"Concatenate", "exp(concatenate((%x, multiply(%x, %x)), axis=1))"},
        GradientCase{"SplitAndFlatten", "%0 = split(%x, indices_or_sections=3, axis=1); exp(nn.batch_flatten(%0.1))"},
        GradientCase{"Conv", "exp(multiply(nn.conv2d(%i, %k, padding=[1, 0]), 0.3f))"},
        GradientCase{"Pools", "exp(multiply(nn.global_avg_pool2d(%i), nn.max_pool2d(%i, pool_size=[3, 2])))"}),
    [](const auto& info) { return std::string(info.param.name); });

// sinh gives cosh, exp gives a product, and what flows to %x is summed up; all on lines of their own.
TEST(FirstOrderGradient, NewNodesHaveTheSpanOfTheirOp) {
  const IRModule after = run_pass("FirstOrderGradient", read("def @main(%x: Tensor[(2, 3), float32]) {\n"
                                                             "  %0 = sinh(%x);\n"
                                                             "  %1 = nn.softmax(%0);\n"
                                                             "  multiply(%1, %x)\n}"));
  std::map<std::string, std::set<int64_t>> lines;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    if (call == nullptr) return;
    ASSERT_TRUE(e->span) << call->as_op()->name;
    lines[call->as_op()->name].insert(e->span->line);
  });
  EXPECT_EQ(lines["cosh"], (std::set<int64_t>{3}));
  EXPECT_EQ(lines["subtract"], (std::set<int64_t>{4}));
  EXPECT_EQ(lines["sum"], (std::set<int64_t>{4}));
  EXPECT_EQ(lines["multiply"], (std::set<int64_t>{3, 4, 5}));
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
  int tried = 0, differentiated = 0;
  const auto cases = static_cast<uint64_t>(kit::case_count(40, 20000));
  for (uint64_t seed = 0; seed < cases; ++seed) {
    if (!kit::is_chosen(seed)) continue;
    ++tried;
    IRModule before = kit::random_program(seed, {.steps = 3, .control_flow = false, .shape_arithmetic = false});
    before = run_pass("RemoveUnusedFunctions", run_pass("SimplifyInference", before));
    IRModule after;
    try {
      after = run_pass("FirstOrderGradient", before);
    } catch (const UserError&) {
      continue;  // an op that has no rule
    }
    kit::Random random(seed);
    EXPECT_LT(worst_error(before, after, kit::random_inputs(before, random)), 1e-4) << "seed " << seed << "\n"
                                                                                    << relay::print_module(before);
    ++differentiated;
  }
  EXPECT_GE(2 * differentiated, tried);
}

constexpr const char* kRoundProgram = "def @main(%x: Tensor[(2), float32]) { round(%x) }";

// Steps have no slope by the project's rule; a user lets the gradient through them, as training of quantized networks
// does.
TEST(FirstOrderGradient, UsersGiveGradientsOfOps) {
  ops::register_all_ops();
  const auto gradient = [] {
    return interp::run_main(run_pass("FirstOrderGradient", read(kRoundProgram)),
                            {NDArray::from_vector<float>({2}, DataType::float_(32), {0.25f, 2})})
        .back();
  };
  EXPECT_FLOAT_EQ(gradient().data<float>()[0], 0.0f);
  const auto straight = [](const relay::Call&, const Expr& by_result) { return Array<Expr>{by_result}; };
  const OpAttr attr("round", kGradientAttr, Value(make_packed(straight)));
  EXPECT_FLOAT_EQ(gradient().data<float>()[0], 1.0f);
  EXPECT_FLOAT_EQ(gradient().data<float>()[1], 1.0f);
}

TEST(FirstOrderGradient, RegisteredGradientsAreChecked) {
  ops::register_all_ops();
  const auto error = [](const Value& rule, const std::string& text = kRoundProgram) {
    const OpAttr attr("round", kGradientAttr, rule);
    return kit::user_error_of([&] { run_pass("FirstOrderGradient", read(text)); });
  };
  const auto two = [](const relay::Call&, const Expr& gradient) { return Array<Expr>{gradient, gradient}; };
  EXPECT_NE(error(Value(make_packed(two))).find("it gives a list of 1: for each argument an expression"),
            std::string::npos);
  const auto summed = [](const relay::Call&, const Expr& gradient) {
    return Array<Expr>{ops::reduce("sum", gradient, Shape{0}, false)};
  };
  const std::string wrong_type =
      "its gradient by argument 0 is of type float32, and the argument of Tensor[(2), float32]";
  EXPECT_TRUE(error(Value(make_packed(summed))).starts_with(wrong_type)) << error(Value(make_packed(summed)));
  // Also where it would broadcast on the way to a parameter.
  const std::string behind = "def @main(%x: Tensor[(2), float32]) { add(round(nn.relu(%x)), %x) }";
  EXPECT_TRUE(error(Value(make_packed(summed)), behind).starts_with(wrong_type));
  const auto typed_wrong = [](const relay::Call&, const Expr& gradient) {
    return Array<Expr>{relay::make_call("nn.dense", {gradient, gradient})};
  };
  EXPECT_TRUE(error(Value(make_packed(typed_wrong))).starts_with("the gradient of round does not fit the program: "));
  EXPECT_TRUE(error(Value(3)).starts_with("the attribute 'FPrimalGradient' of op 'round' is not a function but 3"));
}

}  // namespace
}  // namespace headrace::passes
