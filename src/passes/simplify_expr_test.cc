// Each law of SimplifyExpr: a program and what it becomes.
#include "object/structural_equal.h"
#include "passes/simplify/law.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

constexpr const char* kFloat = "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]";
constexpr const char* kInt = "%x: Tensor[(2, 3), int32], %y: Tensor[(2, 3), int32]";
constexpr const char* kBool = "%x: Tensor[(2, 3), bool], %y: Tensor[(2, 3), bool]";
constexpr const char* kWhere = "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32], %c: Tensor[(2, 3), bool]";
constexpr const char* kOnes = "%x: Tensor[(2, 1, 3), float32]";
constexpr const char* kImage = "%x: Tensor[(1, 2, 3, 3), float32]";

struct Row {
  const char* law;
  const char* params;
  const char* before;
  const char* after;
};

constexpr Row kRows[] = {
    {"AddZero", kFloat, "add(%x, 0f)", "%x"},
    {"ZeroAdd", kFloat, "add(const(Tensor[(3), float32], [0, 0, 0]), %x)", "%x"},
    {"SubtractZero", kFloat, "subtract(%x, 0f)", "%x"},
    {"MultiplyOne", kFloat, "multiply(1f, %x)", "%x"},
    {"DivideOne", kFloat, "divide(%x, 1f)", "%x"},
    {"PowerOne", kFloat, "power(%x, 1f)", "%x"},
    {"JoinSums", kFloat, "add(2f, add(%x, 3f))", "add(%x, 5f)"},
    {"JoinProducts", kFloat, "multiply(multiply(%x, 2f), 3f)", "multiply(%x, 6f)"},
    {"JoinBias", kFloat, "add(nn.bias_add(%x, const(Tensor[(3), float32], [1, 2, 3])), 1f)",
     "add(%x, const(Tensor[(3), float32], [2, 3, 4]))"},
    {"JoinSubtractions", kFloat, "subtract(subtract(%x, 2f), 3f)", "subtract(%x, 5f)"},
    {"AddAfterSubtract", kFloat, "add(subtract(%x, 2f), 3f)", "add(%x, 1f)"},
    {"SubtractAfterAdd", kFloat, "subtract(add(2f, %x), 5f)", "add(%x, -3f)"},
    {"SubtractItself", kInt, "subtract(%x, %x)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"SubtractItselfOfFloats", kFloat, "subtract(%x, %x)", "subtract(%x, %x)"},
    {"MultiplyZero", kInt, "multiply(%x, 0)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"MultiplyZeroOfFloats", kFloat, "multiply(%x, 0f)", "multiply(%x, 0f)"},
    {"SubtractFromZero", kFloat, "subtract(0f, %x)", "negative(%x)"},
    {"MultiplyMinusOne", kFloat, "multiply(-1f, %x)", "negative(%x)"},
    {"AddNegative", kFloat, "add(%x, negative(%y))", "subtract(%x, %y)"},
    {"NegativeAdd", kFloat, "add(negative(%x), %y)", "subtract(%y, %x)"},
    {"SubtractNegative", kFloat, "subtract(%x, negative(%y))", "add(%x, %y)"},
    {"MultiplyNegatives", kFloat, "multiply(negative(%x), negative(%y))", "multiply(%x, %y)"},
    {"DivideNegatives", kFloat, "divide(negative(%x), negative(%y))", "divide(%x, %y)"},
    {"NegateDifference", kFloat, "negative(subtract(%x, %y))", "subtract(%y, %x)"},
    {"NegateTwice", kFloat, "negative(negative(%x))", "%x"},
    {"Square", kFloat, "power(%x, 2f)", "multiply(%x, %x)"},
    {"Invert", kFloat, "power(%x, -1f)", "divide(1f, %x)"},
    {"InvertRoot", kFloat, "divide(1f, sqrt(%x))", "rsqrt(%x)"},
    {"FloorDivideOne", kInt, "floor_divide(%x, 1)", "%x"},
    {"TruncDivideOne", kInt, "trunc_divide(%x, 1)", "%x"},
    {"FloorModOne", kInt, "floor_mod(%x, 1)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"ModOne", kInt, "mod(%x, 1)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"TruncModOne", kInt, "trunc_mod(%x, 1)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"BiasZero", kFloat, "nn.bias_add(%x, const(Tensor[(3), float32], [0, 0, 0]))", "%x"},
    {"CastToItself", kFloat, "cast(%x, dtype=\"float32\")", "%x"},
    {"JoinCasts", kInt, "cast(cast(%x, dtype=\"int64\"), dtype=\"float32\")", "cast(%x, dtype=\"float32\")"},
    {"Copy", kFloat, "copy(%x)", "%x"},
    {"ReluTwice", kFloat, "nn.relu(nn.relu(%x))", "nn.relu(%x)"},
    {"ReluOfNonNegative", kFloat, "nn.relu(sigmoid(%x))", "sigmoid(%x)"},
    {"ReluOfClip", kFloat, "nn.relu(clip(%x, a_min=-1f, a_max=2f))", "clip(%x, a_min=0f, a_max=2f)"},
    {"AbsTwice", kFloat, "abs(abs(%x))", "abs(%x)"},
    {"AbsOfNonNegative", kFloat, "abs(nn.relu(%x))", "nn.relu(%x)"},
    {"AbsOfNegative", kFloat, "abs(negative(%x))", "abs(%x)"},
    {"SignTwice", kFloat, "sign(sign(%x))", "sign(%x)"},
    {"CeilOfFloor", kFloat, "ceil(floor(%x))", "floor(%x)"},
    {"FloorOfFloor", kFloat, "floor(floor(%x))", "floor(%x)"},
    {"RoundOfTrunc", kFloat, "round(trunc(%x))", "trunc(%x)"},
    {"TruncOfCeil", kFloat, "trunc(ceil(%x))", "ceil(%x)"},
    {"JoinClips", kFloat, "clip(clip(%x, a_min=0f, a_max=2f), a_min=1f, a_max=3f)", "clip(%x, a_min=1f, a_max=2f)"},
    {"ClipsApart", kFloat, "clip(clip(%x, a_min=0f, a_max=1f), a_min=2f, a_max=3f)",
     "clip(clip(%x, a_min=0f, a_max=1f), a_min=2f, a_max=3f)"},
    {"ClipOfRelu", kFloat, "clip(nn.relu(%x), a_min=-1f, a_max=1.5f)", "clip(%x, a_min=0f, a_max=1.5f)"},
    {"MaximumOfOne", kFloat, "maximum(%x, %x)", "%x"},
    {"MinimumOfOne", kFloat, "minimum(%x, %x)", "%x"},
    {"MaximumWithZero", kFloat, "maximum(0f, %x)", "nn.relu(%x)"},
    {"MinimumOfMaximum", kFloat, "minimum(maximum(%x, 1f), 2f)", "clip(%x, a_min=1f, a_max=2f)"},
    {"MaximumOfMinimum", kFloat, "maximum(1f, minimum(2f, %x))", "clip(%x, a_min=1f, a_max=2f)"},
    {"MaximumAboveMinimum", kFloat, "maximum(minimum(%x, 1f), 2f)", "maximum(minimum(%x, 1f), 2f)"},
    {"StraightLeakyRelu", kFloat, "nn.leaky_relu(%x, alpha=1f)", "%x"},
    {"NotTwice", kBool, "logical_not(logical_not(%x))", "%x"},
    {"NotEqual", kFloat, "logical_not(equal(%x, %y))", "not_equal(%x, %y)"},
    {"NotLess", kInt, "logical_not(less(%x, %y))", "greater_equal(%x, %y)"},
    {"NotLessOfFloats", kFloat, "logical_not(less(%x, %y))", "logical_not(less(%x, %y))"},
    {"AndItself", kBool, "logical_and(%x, %x)", "%x"},
    {"AndTrue", kBool, "logical_and(%x, True)", "%x"},
    {"AndFalse", kBool, "logical_and(%x, False)", "full(False, shape=[2, 3], dtype=\"bool\")"},
    {"OrItself", kBool, "logical_or(%x, %x)", "%x"},
    {"OrFalse", kBool, "logical_or(False, %x)", "%x"},
    {"OrTrue", kBool, "logical_or(%x, True)", "full(True, shape=[2, 3], dtype=\"bool\")"},
    {"XorFalse", kBool, "logical_xor(%x, False)", "%x"},
    {"XorItself", kBool, "logical_xor(%x, %x)", "full(False, shape=[2, 3], dtype=\"bool\")"},
    {"BitwiseNotTwice", kInt, "bitwise_not(bitwise_not(%x))", "%x"},
    {"BitwiseAndItself", kInt, "bitwise_and(%x, %x)", "%x"},
    {"BitwiseAndZero", kInt, "bitwise_and(%x, 0)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"BitwiseOrItself", kInt, "bitwise_or(%x, %x)", "%x"},
    {"BitwiseOrZero", kInt, "bitwise_or(%x, 0)", "%x"},
    {"BitwiseXorZero", kInt, "bitwise_xor(0, %x)", "%x"},
    {"BitwiseXorItself", kInt, "bitwise_xor(%x, %x)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"LeftShiftZero", kInt, "left_shift(%x, 0)", "%x"},
    {"RightShiftZero", kInt, "right_shift(%x, 0)", "%x"},
    {"EqualItself", kInt, "equal(%x, %x)", "full(True, shape=[2, 3], dtype=\"bool\")"},
    {"LessEqualItself", kInt, "less_equal(%x, %x)", "full(True, shape=[2, 3], dtype=\"bool\")"},
    {"GreaterEqualItself", kInt, "greater_equal(%x, %x)", "full(True, shape=[2, 3], dtype=\"bool\")"},
    {"NotEqualItself", kInt, "not_equal(%x, %x)", "full(False, shape=[2, 3], dtype=\"bool\")"},
    {"LessItself", kInt, "less(%x, %x)", "full(False, shape=[2, 3], dtype=\"bool\")"},
    {"GreaterItself", kInt, "greater(%x, %x)", "full(False, shape=[2, 3], dtype=\"bool\")"},
    {"EqualItselfOfFloats", kFloat, "equal(%x, %x)", "equal(%x, %x)"},
    {"WhereBothSame", kWhere, "where(%c, %x, %x)", "%x"},
    {"WhereTrue", kWhere, "where(True, %x, %y)", "%x"},
    {"WhereFalse", kWhere, "where(False, %x, %y)", "%y"},
    {"WhereNot", kWhere, "where(logical_not(%c), %x, %y)", "where(%c, %y, %x)"},
    {"JoinTransposes", kOnes, "transpose(transpose(tile(%x, reps=[1, 2, 1]), axes=[1, 2, 0]), axes=[1, 0, 2])",
     "transpose(tile(%x, reps=[1, 2, 1]), axes=[2, 1, 0])"},
    {"TransposeBack", kFloat, "transpose(transpose(%x))", "%x"},
    {"LayoutTransformToItself", kImage, "layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NCHW\")", "%x"},
    {"LayoutTransformBack", kImage,
     "layout_transform(layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NCHW2c\"), src_layout=\"NCHW2c\","
     " dst_layout=\"NCHW\")",
     "%x"},
    {"JoinLayoutTransforms", kImage,
     "layout_transform(layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NCHW2c\"), src_layout=\"NCHW2c\","
     " dst_layout=\"NHWC1c\")",
     "layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NHWC1c\")"},
    {"LayoutTransformOfAnother", kImage,
     "layout_transform(layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NHWC\"), src_layout=\"NCHW\","
     " dst_layout=\"NHWC\")",
     "layout_transform(layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NHWC\"), src_layout=\"NCHW\","
     " dst_layout=\"NHWC\")"},
    {"TransposeAsReshape", kOnes, "transpose(%x, axes=[1, 0, 2])", "reshape(%x, newshape=[1, 2, 3])"},
    {"ReshapeToItself", kFloat, "reshape(%x, newshape=[2, -1])", "%x"},
    {"JoinReshapes", kFloat, "reshape(reshape(%x, newshape=[6]), newshape=[3, 2])", "reshape(%x, newshape=[3, 2])"},
    {"FlattenToItself", kFloat, "nn.batch_flatten(%x)", "%x"},
    {"SqueezeOfExpandDims", kFloat, "squeeze(expand_dims(%x, axis=1), axis=[1])", "%x"},
    {"JoinSqueezes", kOnes, "squeeze(squeeze(strided_slice(%x, begin=[0], end=[1]), axis=[0]), axis=[0])",
     "squeeze(strided_slice(%x, begin=[0], end=[1]), axis=[0, 1])"},
    {"ExpandDimsOfSqueeze", kOnes, "expand_dims(squeeze(%x, axis=[1]), axis=1)", "%x"},
    {"JoinExpandDims", kFloat, "expand_dims(expand_dims(%x, axis=1), axis=2)",
     "expand_dims(%x, axis=1, num_newaxis=2)"},
    {"ConcatenateOne", kFloat, "concatenate((%x,), axis=1)", "%x"},
    {"JoinSplit", kFloat, "%0 = split(%x, indices_or_sections=3, axis=1); concatenate((%0.0, %0.1, %0.2), axis=-1)",
     "%x"},
    {"SplitInAnotherOrder", kFloat, "%0 = split(%x, indices_or_sections=2); concatenate((%0.1, %0.0))",
     "%0 = split(%x, indices_or_sections=2); concatenate((%0.1, %0.0))"},
    {"StackOne", kFloat, "stack((%x,), axis=1)", "expand_dims(%x, axis=1)"},
    {"SplitIntoOne", kFloat, "%0 = split(%x, indices_or_sections=1); %0.0", "%x"},
    {"PadNothing", kFloat, "nn.pad(%x, 1f, pad_width=[[0, 0], [0, 0]])", "%x"},
    {"JoinPads", kFloat, "nn.pad(nn.pad(%x, 2f, pad_width=[[1, 0], [0, 0]]), 2f, pad_width=[[1, 2], [0, 3]])",
     "nn.pad(%x, 2f, pad_width=[shape(2, 2), shape(0, 3)])"},
    {"MirrorPadNothing", kFloat, "nn.mirror_pad(%x, pad_width=[[0, 0], [0, 0]])", "%x"},
    {"SliceAll", kFloat, "strided_slice(%x, begin=[0, 0], end=[2, 3])", "%x"},
    {"BroadcastToItself", kFloat, "broadcast_to(%x, shape=[2, 3])", "%x"},
    {"JoinBroadcasts", kOnes, "broadcast_to(broadcast_to(%x, shape=[2, 4, 3]), shape=[5, 2, 4, 3])",
     "broadcast_to(%x, shape=[5, 2, 4, 3])"},
    {"TileOnce", kFloat, "tile(%x, reps=[1, 1])", "%x"},
    {"RepeatOnce", kFloat, "repeat(%x, repeats=1, axis=1)", "%x"},
    {"ReverseTwice", kFloat, "reverse(reverse(%x, axis=1), axis=-1)", "%x"},
    {"ReverseOne", kOnes, "reverse(%x, axis=1)", "%x"},
    {"SumOfOne", kOnes, "sum(%x, axis=[1])", "reshape(%x, newshape=[2, 3])"},
    {"MeanOfOne", kOnes, "mean(%x, axis=[1], keepdims=True)", "%x"},
    {"MaxOfOne", kOnes, "max(%x, axis=[-2], keepdims=True)", "%x"},
    {"MinOfOne", kOnes, "min(%x, axis=[1])", "reshape(%x, newshape=[2, 3])"},
    {"ProdOfOne", kOnes, "prod(%x, axis=[1], keepdims=True)", "%x"},
    {"MaxPoolOfOne", kImage, "nn.max_pool2d(%x, pool_size=[1, 1])", "%x"},
    {"AvgPoolOfOne", kImage, "nn.avg_pool2d(%x, pool_size=[1, 1])", "%x"},
    {"KnownBranch", kFloat, "if (False) { exp(%x) } else { %y }", "%y"},
};

// Halves from -1 on; of bool, True and False by turns.
std::vector<NDArray> inputs_of(const IRModule& module) {
  std::vector<NDArray> inputs;
  const BaseFunc main = module->lookup("main");
  for (const relay::Var& param : main.as<relay::FunctionNode>()->params) {
    const auto* type = param->checked_type().as<TensorTypeNode>();
    NDArray data = NDArray::empty(type->concrete_shape(), type->dtype);
    for (int64_t i = 0; i < data.num_elements(); ++i) {
      const double value = type->dtype.is_bool() ? static_cast<double>((i + static_cast<int64_t>(inputs.size())) % 2)
                                                 : -1 + 0.5 * static_cast<double>(i);
      set_element(data.tensor(), i, value);
    }
    inputs.push_back(data);
  }
  return inputs;
}

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.before; }

class SimplifyLaw : public testing::TestWithParam<Row> {};

TEST_P(SimplifyLaw, Holds) {
  const auto program = [](const char* body) {
    return read(fmt::format("def @main({}) {{ {} }}", GetParam().params, body));
  };
  const IRModule before = program(GetParam().before), want = program(GetParam().after);
  const IRModule got = run_pass("SimplifyExpr", before);
  const auto mismatch = first_mismatch(Value(got), Value(want));
  EXPECT_FALSE(mismatch) << mismatch->path << "\n" << relay::print_module(got);
  expect_same_results(before, got, inputs_of(before), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Laws, SimplifyLaw, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.law); });

TEST(SimplifyExpr, ThereAreFortyLawsAndMore) {
  const size_t count = simplify::arithmetic_laws().size() + simplify::elementwise_laws().size() +
                       simplify::logic_laws().size() + simplify::shape_laws().size();
  EXPECT_GE(count, 100u);
  EXPECT_GE(std::size(kRows), count) << "a law without a case";
}

// A reading of a reference stays where it is, and happens.
TEST(SimplifyExpr, EffectsStay) {
  for (const char* body :
       {"add(negative(ref_read(%r)), { let %_ = ref_write(%r, %x); %y })",
        "where(False, { let %_ = ref_write(%r, %x); %y }, ref_read(%r))", "subtract(%x, negative(ref_read(%r)))"}) {
    const IRModule before = read(fmt::format("def @main({}) {{ let %r = ref(exp(%x)); {} }}", kFloat, body));
    EXPECT_EQ(run_pass("SimplifyExpr", before)->lookup("main"), before->lookup("main")) << body;
  }
}

TEST(SimplifyExpr, AKnownBranchMayHaveEffects) {
  const IRModule before = read(
      "def @main(%x: Tensor[(2), float32]) { let %r = ref(%x);\n"
      "  let %_ = if (True) { ref_write(%r, exp(%x)) } else { () }; ref_read(%r) }");
  const IRModule after = run_pass("SimplifyExpr", before);
  relay::post_order(after->lookup("main"), [](const Expr& e) { EXPECT_FALSE(e.is<relay::IfNode>()); });
  expect_same_results(before, after, {ramp({2}, 0)}, 0);
}

}  // namespace
}  // namespace headrace::passes
