// Tests each law of SimplifyExpr with a program before and after.
#include <regex>

#include "kit/property.h"
#include "object/structural_equal.h"
#include "passes/simplify/law.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

constexpr const char* kFloat = "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32]";
constexpr const char* kInt = "%x: Tensor[(2, 3), int32], %y: Tensor[(2, 3), int32]";
constexpr const char* kUnsigned = "%x: Tensor[(2, 3), uint8], %y: Tensor[(2, 3), uint8]";
constexpr const char* kBool = "%x: Tensor[(2, 3), bool], %y: Tensor[(2, 3), bool]";
constexpr const char* kWhere = "%x: Tensor[(2, 3), float32], %y: Tensor[(2, 3), float32], %c: Tensor[(2, 3), bool]";
constexpr const char* kOnes = "%x: Tensor[(2, 1, 3), float32]";
constexpr const char* kImage = "%x: Tensor[(1, 2, 3, 3), float32]";
constexpr const char* kLine = "%x: Tensor[(1, 2, 3), float32]";
constexpr const char* kColumn = "%x: Tensor[(2, 1), float32], %y: Tensor[(2, 3), float32]";
constexpr const char* kTwoShapes = "%x: Tensor[(2, 1, 3), float32], %y: Tensor[(3, 2), float32]";
constexpr const char* kTwoDtypes = "%x: Tensor[(2, 3), float32], %i: Tensor[(3), int32]";
constexpr const char* kVolume = "%x: Tensor[(1, 2, 2, 1, 3), float32]";

// How far a law may change results of floats.
enum Exactness : uint8_t { kToTheBit, kButForTheSignOfZero, kUpToRounding };

struct Row {
  const char* law;
  const char* params;
  const char* before;
  const char* after;
  Exactness exactness = kToTheBit;
  bool as_named = false;  // a law that applies where the pass is named only
};

constexpr Row kRows[] = {
    {"AddZero", kFloat, "add(%x, 0f)", "%x", kButForTheSignOfZero},
    {"ZeroAdd", kFloat, "add(const(Tensor[(3), float32], [0, 0, 0]), %x)", "%x", kButForTheSignOfZero},
    {"SubtractZero", kFloat, "subtract(%x, 0f)", "%x"},
    {"MultiplyOne", kFloat, "multiply(1f, %x)", "%x"},
    {"DivideOne", kFloat, "divide(%x, 1f)", "%x"},
    {"PowerOne", kFloat, "power(%x, 1f)", "%x"},
    {"JoinSums", kFloat, "add(2f, add(%x, 3f))", "add(%x, 5f)", kUpToRounding},
    {"JoinProducts", kFloat, "multiply(multiply(%x, 2f), 3f)", "multiply(%x, 6f)", kUpToRounding},
    {"JoinBias", kFloat, "add(nn.bias_add(%x, const(Tensor[(3), float32], [1, 2, 3])), 1f)",
     "add(%x, const(Tensor[(3), float32], [2, 3, 4]))", kUpToRounding},
    {"JoinSubtractions", kFloat, "subtract(subtract(%x, 2f), 3f)", "subtract(%x, 5f)", kUpToRounding},
    {"AddAfterSubtract", kFloat, "add(subtract(%x, 2f), -3f)", "add(%x, -5f)", kUpToRounding},
    {"SubtractAfterAdd", kFloat, "subtract(add(2f, %x), -5f)", "add(%x, 7f)", kUpToRounding},
    {"SumsOfOppositeSigns", kFloat, "add(-2f, add(%x, 3f))", "add(-2f, add(%x, 3f))"},
    {"SubtractWhatWasAdded", kFloat, "subtract(add(%x, 12582912f), 12582912f)",
     "subtract(add(%x, 12582912f), 12582912f)"},
    {"AddWhatWasSubtracted", kFloat, "add(subtract(%x, 2f), 3f)", "add(subtract(%x, 2f), 3f)"},
    {"SubtractOppositeSigns", kFloat, "subtract(subtract(%x, 2f), -3f)", "subtract(subtract(%x, 2f), -3f)"},
    {"BiasOfMixedSigns", kFloat, "add(nn.bias_add(%x, const(Tensor[(3), float32], [1, -2, 3])), 1f)",
     "add(nn.bias_add(%x, const(Tensor[(3), float32], [1, -2, 3])), 1f)"},
    {"JoinSumsOfIntegers", kInt, "subtract(add(%x, 2), 5)", "add(%x, -3)"},
    {"ProductsPastTheRange", kFloat, "multiply(multiply(%x, 1e30f), 1e-30f)", "multiply(multiply(%x, 1e30f), 1e-30f)"},
    {"ProductsThatShrink", kFloat, "multiply(multiply(%x, 1e-10f), 1e-20f)", "multiply(%x, 1e-30f)", kUpToRounding},
    {"AddFilled", kFloat, "add(%x, ones(shape=[2, 3]))", "add(%x, 1f)"},
    {"SubtractFromFilled", kFloat, "subtract(full(2f, shape=[2, 3], dtype=\"float32\"), %x)", "subtract(2f, %x)"},
    {"MultiplyByFilled", kInt, "multiply(full(2, shape=[3], dtype=\"int32\"), %x)", "multiply(2, %x)"},
    {"DivideFilled", kFloat, "divide(ones(shape=[2, 3]), %x)", "divide(1f, %x)"},
    {"FilledThatBroadcasts", kLine, "add(%x, ones(shape=[4, 1, 2, 3]))", "add(%x, ones(shape=[4, 1, 2, 3]))"},
    {"AddItself", kFloat, "add(%x, %x)", "multiply(%x, 2f)", kToTheBit, true},
    {"Distribute", kFloat, "multiply(0.5f, add(%x, 3f))", "add(multiply(%x, 0.5f), 1.5f)", kUpToRounding, true},
    {"DistributeToAProduct", kFloat, "multiply(add(1f, multiply(%x, 0.5f)), 0.25f)", "add(multiply(%x, 0.125f), 0.25f)",
     kUpToRounding, true},
    {"SubtractItself", kInt, "subtract(%x, %x)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"SubtractItselfOfFloats", kFloat, "subtract(%x, %x)", "subtract(%x, %x)"},
    {"MultiplyZero", kInt, "multiply(%x, 0)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"MultiplyZeroOfFloats", kFloat, "multiply(%x, 0f)", "multiply(%x, 0f)"},
    {"SubtractFromZero", kFloat, "subtract(0f, %x)", "negative(%x)", kButForTheSignOfZero},
    {"MultiplyMinusOne", kFloat, "multiply(-1f, %x)", "negative(%x)"},
    {"AddNegative", kFloat, "add(%x, negative(%y))", "subtract(%x, %y)"},
    {"NegativeAdd", kFloat, "add(negative(%x), %y)", "subtract(%y, %x)"},
    {"SubtractNegative", kFloat, "subtract(%x, negative(%y))", "add(%x, %y)"},
    {"MultiplyNegatives", kFloat, "multiply(negative(%x), negative(%y))", "multiply(%x, %y)"},
    {"DivideNegatives", kFloat, "divide(negative(%x), negative(%y))", "divide(%x, %y)"},
    {"MultiplyNegativeIntegers", kInt, "multiply(negative(%x), negative(%y))", "multiply(%x, %y)"},
    {"DivideNegativeIntegers", kInt, "divide(negative(%x), negative(%y))", "divide(negative(%x), negative(%y))"},
    {"DivideNegativeUnsigned", kUnsigned, "divide(negative(%x), negative(%y))", "divide(negative(%x), negative(%y))"},
    {"NegateDifference", kFloat, "negative(subtract(%x, %y))", "subtract(%y, %x)", kButForTheSignOfZero},
    {"NegateTwice", kFloat, "negative(negative(%x))", "%x"},
    {"Square", kFloat, "power(%x, 2f)", "multiply(%x, %x)", kUpToRounding},
    {"Cube", kFloat, "power(%x, 3f)", "multiply(multiply(%x, %x), %x)", kUpToRounding},
    {"Invert", kFloat, "power(%x, -1f)", "divide(1f, %x)", kUpToRounding},
    {"InvertRoot", kFloat, "divide(1f, sqrt(%x))", "rsqrt(%x)", kUpToRounding},
    {"DivideByRoot", kFloat, "divide(3f, sqrt(%x))", "multiply(3f, rsqrt(%x))", kUpToRounding},
    {"FloorDivideOne", kInt, "floor_divide(%x, 1)", "%x"},
    {"TruncDivideOne", kInt, "trunc_divide(%x, 1)", "%x"},
    {"FloorModOne", kInt, "floor_mod(%x, 1)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"ModOne", kInt, "mod(%x, 1)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"TruncModOne", kInt, "trunc_mod(%x, 1)", "full(0, shape=[2, 3], dtype=\"int32\")"},
    {"BiasZero", kFloat, "nn.bias_add(%x, const(Tensor[(3), float32], [0, 0, 0]))", "%x", kButForTheSignOfZero},
    {"CastToItself", kFloat, "cast(%x, dtype=\"float32\")", "%x"},
    {"JoinCasts", kInt, "cast(cast(%x, dtype=\"int64\"), dtype=\"float32\")", "cast(%x, dtype=\"float32\")"},
    {"CastLike", kTwoDtypes, "cast_like(%x, %i)", "cast(%x, dtype=\"int32\")"},
    {"CastLikeItself", kFloat, "cast_like(%x, %y)", "%x"},
    {"Copy", kFloat, "copy(%x)", "%x"},
    {"ReluTwice", kFloat, "nn.relu(nn.relu(%x))", "nn.relu(%x)"},
    {"ReluOfNonNegative", kFloat, "nn.relu(sigmoid(%x))", "sigmoid(%x)"},
    {"ReluOfClip", kFloat, "nn.relu(clip(%x, a_min=-1f, a_max=2f))", "clip(%x, a_min=0f, a_max=2f)"},
    {"AbsTwice", kFloat, "abs(abs(%x))", "abs(%x)"},
    {"AbsOfNonNegative", kFloat, "abs(nn.relu(%x))", "nn.relu(%x)", kButForTheSignOfZero},
    {"AbsOfNegative", kFloat, "abs(negative(%x))", "abs(%x)"},
    {"AbsOfNegativeInteger", kInt, "abs(negative(%x))", "abs(%x)"},
    {"AbsOfNegativeUnsigned", kUnsigned, "abs(negative(%x))", "abs(negative(%x))"},
    {"SignTwice", kFloat, "sign(sign(%x))", "sign(%x)"},
    {"CeilOfFloor", kFloat, "ceil(floor(%x))", "floor(%x)"},
    {"FloorOfFloor", kFloat, "floor(floor(%x))", "floor(%x)"},
    {"RoundOfTrunc", kFloat, "round(trunc(%x))", "trunc(%x)"},
    {"RoundOfNearbyint", kFloat, "round(nearbyint(%x))", "nearbyint(%x)"},
    {"NearbyintOfRound", kFloat, "nearbyint(round(%x))", "round(%x)"},
    {"TruncOfCeil", kFloat, "trunc(ceil(%x))", "ceil(%x)"},
    {"CastOfClipAndBack", kInt, "cast(cast(clip(%x, a_min=0f, a_max=255f), dtype=\"uint8\"), dtype=\"int32\")",
     "clip(%x, a_min=0f, a_max=255f)"},
    {"CastOfClip", kFloat, "cast(cast(clip(%x, a_min=-3f, a_max=200f), dtype=\"int16\"), dtype=\"int32\")",
     "cast(clip(%x, a_min=-3f, a_max=200f), dtype=\"int32\")"},
    {"CastOfClipThatCuts", kFloat, "cast(cast(clip(%x, a_min=0f, a_max=255f), dtype=\"int8\"), dtype=\"int32\")",
     "cast(cast(clip(%x, a_min=0f, a_max=255f), dtype=\"int8\"), dtype=\"int32\")"},
    {"CastOfClipToFloat", kFloat, "cast(cast(clip(%x, a_min=0f, a_max=9f), dtype=\"int8\"), dtype=\"float64\")",
     "cast(cast(clip(%x, a_min=0f, a_max=9f), dtype=\"int8\"), dtype=\"float64\")"},
    {"ClipToTheWholeRange", kUnsigned, "clip(%x, a_min=0f, a_max=255f)", "%x"},
    {"ClipToLess", kUnsigned, "clip(%x, a_min=0f, a_max=254f)", "clip(%x, a_min=0f, a_max=254f)"},
    {"JoinClips", kFloat, "clip(clip(%x, a_min=0f, a_max=2f), a_min=1f, a_max=3f)", "clip(%x, a_min=1f, a_max=2f)"},
    {"ClipsApart", kFloat, "clip(clip(%x, a_min=0f, a_max=1f), a_min=2f, a_max=3f)",
     "clip(clip(%x, a_min=0f, a_max=1f), a_min=2f, a_max=3f)"},
    {"ClipOfRelu", kFloat, "clip(nn.relu(%x), a_min=-1f, a_max=1.5f)", "clip(%x, a_min=0f, a_max=1.5f)"},
    {"MaximumOfOne", kFloat, "maximum(%x, %x)", "%x"},
    {"MinimumOfOne", kFloat, "minimum(%x, %x)", "%x"},
    {"MaximumWithZero", kFloat, "maximum(0f, %x)", "nn.relu(%x)", kButForTheSignOfZero},
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
     "transpose(%x, axes=[0, 3, 1, 2])"},
    {"LayoutTransformOfTranspose", kImage,
     "layout_transform(transpose(%x, axes=[0, 2, -1, 1]), src_layout=\"NHWC\", dst_layout=\"NCHW2c\")",
     "layout_transform(%x, src_layout=\"NCHW\", dst_layout=\"NCHW2c\")"},
    {"TransposeOfLayoutTransform", "%x: Tensor[(1, 2, 3, 4, 2), float32]",
     "transpose(layout_transform(%x, src_layout=\"NCHW2c\", dst_layout=\"NCHW\"), axes=[0, 2, 3, 1])",
     "layout_transform(%x, src_layout=\"NCHW2c\", dst_layout=\"NHWC\")"},
    {"ReverseReshape", kFloat, "contrib_reverse_reshape(reshape(%x, newshape=[6]), newshape=[3, -1])",
     "reshape(%x, newshape=[3, 2])"},
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
     "nn.pad(%x, 2f, pad_width=[[2, 2], [0, 3]])"},
    {"MirrorPadNothing", kFloat, "nn.mirror_pad(%x, pad_width=[[0, 0], [0, 0]])", "%x"},
    {"SliceAll", kFloat, "strided_slice(%x, begin=[0, 0], end=[2, 3])", "%x"},
    {"BroadcastToItself", kFloat, "broadcast_to(%x, shape=[2, 3])", "%x"},
    {"JoinBroadcasts", kOnes, "broadcast_to(broadcast_to(%x, shape=[2, 4, 3]), shape=[5, 2, 4, 3])",
     "broadcast_to(%x, shape=[5, 2, 4, 3])"},
    {"TileOnce", kFloat, "tile(%x, reps=[1, 1])", "%x"},
    {"RepeatOnce", kFloat, "repeat(%x, repeats=1, axis=1)", "%x"},
    {"ReverseTwice", kFloat, "reverse(reverse(%x, axis=1), axis=-1)", "%x"},
    {"ReverseOne", kOnes, "reverse(%x, axis=1)", "%x"},
    {"SumOfOne", kOnes, "sum(%x, axis=[1])", "reshape(%x, newshape=[2, 3])", kButForTheSignOfZero},
    {"MeanOfOne", kOnes, "mean(%x, axis=[1], keepdims=True)", "%x", kButForTheSignOfZero},
    {"MaxOfOne", kOnes, "max(%x, axis=[-2], keepdims=True)", "%x"},
    {"MinOfOne", kOnes, "min(%x, axis=[1])", "reshape(%x, newshape=[2, 3])"},
    {"ProdOfOne", kOnes, "prod(%x, axis=[1], keepdims=True)", "%x"},
    {"CollapseNothing", kFloat, "collapse_sum_to(%x, shape=[2, 3])", "%x", kButForTheSignOfZero},
    {"CollapseOne", kLine, "collapse_sum_to(%x, shape=[2, 3])", "reshape(%x, newshape=[2, 3])", kButForTheSignOfZero},
    {"ZerosLike", kFloat, "zeros_like(%x)", "zeros(shape=[2, 3], dtype=\"float32\")"},
    {"AddZerosLike", kFloat, "add(%x, zeros_like(%y))", "%x", kButForTheSignOfZero},
    {"OnesLike", kFloat, "ones_like(%x)", "ones(shape=[2, 3], dtype=\"float32\")"},
    {"FullLike", kFloat, "full_like(%x, 2f)", "full(2f, shape=[2, 3], dtype=\"float32\")"},
    {"ReshapeLike", kTwoShapes, "reshape_like(%x, %y)", "reshape(%x, newshape=[3, 2])"},
    {"BroadcastToLike", kColumn, "broadcast_to_like(%x, %y)", "broadcast_to(%x, shape=[2, 3])"},
    {"CollapseSumLike", kColumn, "collapse_sum_like(%y, %x)", "collapse_sum_to(%y, shape=[2, 1])"},
    {"MaxPoolOfOne", kImage, "nn.max_pool2d(%x, pool_size=[1, 1])", "%x"},
    {"AvgPoolOfOne", kImage, "nn.avg_pool2d(%x, pool_size=[1, 1])", "%x", kButForTheSignOfZero},
    {"MaxPool1dOfOne", kLine, "nn.max_pool1d(%x, pool_size=[1])", "%x"},
    {"AvgPool1dOfOne", kLine, "nn.avg_pool1d(%x, pool_size=[1])", "%x", kButForTheSignOfZero},
    {"MaxPool3dOfOne", kVolume, "nn.max_pool3d(%x, pool_size=[1, 1, 1])", "%x"},
    {"AvgPool3dOfOne", kVolume, "nn.avg_pool3d(%x, pool_size=[1, 1, 1])", "%x", kButForTheSignOfZero},
    {"KnownBranch", kFloat, "if (False) { exp(%x) } else { %y }", "%y"},
};

// Returns halves from -1 on; for bool, True and False in turn; for int64, which are sizes here, 5.
NDArray input_of(const Shape& shape, DataType dtype, size_t number) {
  NDArray data = NDArray::empty(shape, dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    const double value = dtype.is_bool()               ? static_cast<double>((i + static_cast<int64_t>(number)) % 2)
                         : dtype == DataType::int_(64) ? 5
                                                       : -1 + 0.5 * static_cast<double>(i);
    set_element(data.tensor(), i, value);
  }
  return data;
}

const relay::FunctionNode& entry_of(const IRModule& module) {
  const BaseFunc main = module->lookup("main");
  return *main.as<relay::FunctionNode>();
}

const TensorTypeNode& tensor_type_of(const relay::Var& param) { return *param->checked_type().as<TensorTypeNode>(); }

std::vector<NDArray> inputs_of(const IRModule& module) {
  std::vector<NDArray> inputs;
  for (const relay::Var& param : entry_of(module).params) {
    const TensorTypeNode& type = tensor_type_of(param);
    inputs.push_back(input_of(type.concrete_shape(), type.dtype, inputs.size()));
  }
  return inputs;
}

IRModule law_program(const std::string& params, const std::string& body) {
  return read(fmt::format("def @main({}) {{ {} }}", params, body));
}

void expect_becomes(const IRModule& got, const IRModule& want) {
  const auto mismatch = first_mismatch(Value(got), Value(want));
  EXPECT_FALSE(mismatch) << mismatch->path << "\n" << relay::print_module(got);
}

inline void PrintTo(const Row& row, std::ostream* out) { *out << row.before; }

pass::PassContext context_of(const Row& row = {}) {
  pass::PassContext context = typed_context();
  context.config.set("relay.SimplifyExpr.as_in_relay", Value(row.as_named));
  return context;
}

class SimplifyLaw : public testing::TestWithParam<Row> {};

TEST_P(SimplifyLaw, Holds) {
  const IRModule before = law_program(GetParam().params, GetParam().before);
  const IRModule got = run_pass("SimplifyExpr", before, context_of(GetParam()));
  expect_becomes(got, law_program(GetParam().params, GetParam().after));
  expect_same_results(before, got, inputs_of(before), 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Laws, SimplifyLaw, testing::ValuesIn(kRows),
                         [](const auto& info) { return std::string(info.param.law); });

// The calls of the body that the law applies to.
int applications(const simplify::Law& law, const Expr& body) {
  int count = 0;
  relay::post_order(body, [&](const Expr& expr) {
    const auto* call = expr.as<relay::CallNode>();
    if (call == nullptr || !relay::is_call(*call, law.op)) return;
    const simplify::Site site{*call, expr->checked_type()};
    count += law.holds_for(site, 3) && law.apply(site) ? 1 : 0;
  });
  return count;
}

TEST(SimplifyExpr, EveryLawHasACase) {
  std::vector<Expr> bodies;
  for (const Row& row : kRows) bodies.push_back(entry_of(law_program(row.params, row.before)).body);
  for (const auto& table :
       {simplify::arithmetic_laws(), simplify::elementwise_laws(), simplify::logic_laws(), simplify::shape_laws()}) {
    for (const simplify::Law& law : table) {
      int count = 0;
      for (const Expr& body : bodies) count += applications(law, body);
      EXPECT_GT(count, 0) << "law " << &law - table.data() << " of its table, of " << law.op.name();
    }
  }
}

// ---- data-dependent dimensions, where equal text does not mean equal size; and dimensions of 0 or 1

struct OpenRow {
  const char* law;
  const char* params;
  const char* before;
  const char* after;  // null: as it is
  std::vector<Shape> shapes;
};

const OpenRow kOpenRows[] = {
    {"PartOfASplit",
     "%x: Tensor[(4), bool]",
     "%0 = argwhere(%x); %1 = split(%0, indices_or_sections=[1], axis=0); %1.1",
     nullptr,
     {{4}}},
    {"PartOfASplitInTwo", "%x: Tensor[(?), float32]", "%0 = split(%x, indices_or_sections=2); %0.0", nullptr, {{4}}},
    {"OnlyPart", "%x: Tensor[(?), float32]", "%0 = split(%x, indices_or_sections=[]); %0.0", "%x", {{4}}},
    {"AddZeros",
     "%x: Tensor[(?), float32], %s: Tensor[(1), int64]",
     "add(%x, zeros(%s, dtype=\"float32\"))",
     nullptr,
     {{1}, {1}}},
    {"MultiplyByOnes",
     "%x: Tensor[(?), float32], %s: Tensor[(1), int64]",
     "multiply(ones(%s, dtype=\"float32\"), %x)",
     nullptr,
     {{1}, {1}}},
    {"MaximumWithZeros",
     "%x: Tensor[(?), float32], %s: Tensor[(1), int64]",
     "maximum(%x, zeros(%s, dtype=\"float32\"))",
     nullptr,
     {{1}, {1}}},
    {"SubtractFromZeros",
     "%x: Tensor[(?), float32], %s: Tensor[(1), int64]",
     "subtract(zeros(%s, dtype=\"float32\"), %x)",
     nullptr,
     {{1}, {1}}},
    {"WhereBothSame", "%c: Tensor[(?), bool], %x: Tensor[(?), float32]", "where(%c, %x, %x)", nullptr, {{4}, {1}}},
    {"WhereBothSameOfOne", "%c: Tensor[(1), bool], %x: Tensor[(?), float32]", "where(%c, %x, %x)", "%x", {{1}, {4}}},
    {"WhereTrue", "%x: Tensor[(?), float32], %y: Tensor[(?), float32]", "where(True, %x, %y)", nullptr, {{1}, {4}}},
    {"WhereFalse", "%x: Tensor[(?), float32], %y: Tensor[(?), float32]", "where(False, %x, %y)", nullptr, {{4}, {1}}},
    {"OneSymbol", "%x: Tensor[(n), float32], %y: Tensor[(n), float32]", "where(True, %x, %y)", "%x", {{4}, {4}}},
    {"AddZero", "%x: Tensor[(?, 3), float32]", "add(%x, 0f)", "%x", {{2, 3}}},
    {"AddARow", "%x: Tensor[(?, 3), float32]", "add(const(Tensor[(3), float32], [0, 0, 0]), %x)", "%x", {{2, 3}}},
    {"AddRows",
     "%x: Tensor[(?, 3), float32]",
     "add(const(Tensor[(2, 3), float32], [0, 0, 0, 0, 0, 0]), %x)",
     nullptr,
     {{1, 3}}},
    {"MaximumOfOne", "%x: Tensor[(?), float32]", "maximum(%x, %x)", "%x", {{4}}},
    {"ZeroBias",
     "%x: Tensor[(2, ?), float32]",
     "nn.bias_add(%x, const(Tensor[(3), float32], [0, 0, 0]))",
     "%x",
     {{2, 3}}},
    {"Copy", "%x: Tensor[(?), float32]", "copy(%x)", "%x", {{4}}},
    {"Tile", "%x: Tensor[(?), float32]", "tile(%x, reps=[2])", nullptr, {{4}}},
    {"Repeat", "%x: Tensor[(?), float32]", "repeat(%x, repeats=2, axis=0)", nullptr, {{4}}},
    {"Slice", "%x: Tensor[(?), float32]", "strided_slice(%x, begin=[1], end=[3])", nullptr, {{4}}},
    {"Reshape",
     "%x: Tensor[(?, 2, ?), float32]",
     "reshape(reshape(%x, newshape=[-3, 0]), newshape=[0, -4, 2, -1])",
     nullptr,
     {{1, 2, 4}}},
    {"JoinSplit",
     "%x: Tensor[(?), float32]",
     "%0 = split(%x, indices_or_sections=[1]); concatenate((%0.0, %0.1))",
     "%x",
     {{4}}},
    {"Pool", "%x: Tensor[(?, 2, ?, ?), float32]", "nn.max_pool2d(%x, pool_size=[1, 1])", "%x", {{1, 2, 3, 3}}},
    {"Pad", "%x: Tensor[(?), float32]", "nn.pad(%x, 1f, pad_width=[[0, 0]])", "%x", {{4}}},
    {"Likes",
     "%x: Tensor[(?), float32], %y: Tensor[(n), float32]",
     "(zeros_like(%x), ones_like(%y), full_like(%x, 2f), reshape_like(%x, %y), broadcast_to_like(%x, %y),"
     " collapse_sum_like(%x, %y))",
     nullptr,
     {{4}, {4}}},
    {"LikeWhatIsKnown",
     "%x: Tensor[(?), float32], %y: Tensor[(4), float32]",
     "(reshape_like(%x, %y), broadcast_to_like(%x, %y))",
     "(reshape(%x, newshape=[4]), broadcast_to(%x, shape=[4]))",
     {{4}, {4}}},
    {"CastLike",
     "%x: Tensor[(?), float32], %y: Tensor[(?), float64]",
     "cast_like(%x, %y)",
     "cast(%x, dtype=\"float64\")",
     {{4}, {2}}},
    {"LikeScalars",
     "%x: Tensor[(1), float32], %y: Tensor[(), float32]",
     "(zeros_like(%y), ones_like(%y), full_like(%y, 2f), reshape_like(%x, %y), collapse_sum_like(%x, %y))",
     "(zeros(shape=[], dtype=\"float32\"), ones(shape=[], dtype=\"float32\"),"
     " full(2f, shape=[], dtype=\"float32\"), reshape(%x, newshape=[]), reshape(%x, newshape=[]))",
     {{1}, {}}},
    {"LikeNothing",
     "%x: Tensor[(0, 3), float32], %y: Tensor[(3, 0), float32]",
     "(reshape_like(%x, %y), zeros_like(%x))",
     "(reshape(%x, newshape=[3, 0], allowzero=True), zeros(shape=[0, 3], dtype=\"float32\"))",
     {{0, 3}, {3, 0}}},
};

inline void PrintTo(const OpenRow& row, std::ostream* out) { *out << row.before; }

class SimplifyOpenLaw : public testing::TestWithParam<OpenRow> {};

TEST_P(SimplifyOpenLaw, Holds) {
  const OpenRow& row = GetParam();
  const IRModule before = law_program(row.params, row.before);
  const IRModule got = run_pass("SimplifyExpr", before, context_of());
  expect_becomes(got, row.after == nullptr ? before : law_program(row.params, row.after));
  std::vector<NDArray> inputs;
  for (const relay::Var& param : entry_of(before).params) {
    const size_t number = inputs.size();
    inputs.push_back(input_of(row.shapes[number], tensor_type_of(param).dtype, number));
  }
  expect_same_results(before, got, inputs, 0);
}

INSTANTIATE_TEST_SUITE_P(Laws, SimplifyOpenLaw, testing::ValuesIn(kOpenRows),
                         [](const auto& info) { return std::string(info.param.law); });

// ---- every law in every dtype

struct ElementDtype {
  const char* name;
  const char* suffix;  // ending of a literal
  int least_used;      // so many rows or more are programs of this dtype
};
constexpr ElementDtype kDtypes[] = {{"float32", "f", 129},     {"float64", "f64", 129}, {"float16", "f16", 129},
                                    {"bfloat16", "bf16", 129}, {"int8", "i8", 134},     {"int32", "", 134},
                                    {"int64", "i64", 134},     {"uint8", "u8", 132},    {"uint32", "u32", 132},
                                    {"bool", "", 67}};

// Returns the row's program with another dtype in place of its first parameter's, literals included; null where there
// is none.
IRModule program_in(const Row& row, const ElementDtype& dtype) {
  // A number without a suffix is int32 as an operand, and else part of an attribute.
  static const std::regex kReal("([( ]-?[0-9.]+(?:e[-+]?[0-9]+)?)f(?=[,)])"), kInteger("([( ]-?[0-9]+)(?=[,)])");
  const std::string params = row.params;
  const size_t comma = params.find("), ");
  const std::string own = params.substr(comma + 3, params.find(']', comma) - comma - 3);
  const auto typed = [&](const char* text) { return std::regex_replace(text, std::regex(own), dtype.name); };
  const std::string body =
      std::regex_replace(typed(row.before), own == "int32" ? kInteger : kReal, "$1" + std::string(dtype.suffix));
  try {
    return law_program(typed(row.params), body);
  } catch (const UserError&) {
    return {};
  }
}

// Every second element is one at which laws break.
void draw_element(kit::Random& random, const NDArray& data, int64_t i) {
  static constexpr double kReals[] = {NAN, INFINITY, 0.0, 1.0, 0.5, 65504, 3e38, 1e308, 6e-8, 1e-45, 5e-324};
  const DataType dtype = data.dtype();
  if (dtype.is_float()) {
    const double magnitude = random.chance(0.5F) ? kReals[random.index(std::size(kReals))] : random.uniform(0, 4);
    return set_element(data.tensor(), i, random.chance(0.5F) ? magnitude : -magnitude);
  }
  const int bits = dtype.is_bool() ? 1 : dtype.bits();
  const uint64_t least = dtype.is_int() ? uint64_t{1} << (bits - 1) : 0;
  const uint64_t specials[] = {0, 1, 2, ~uint64_t{0}, least, least - 1};
  const uint64_t drawn = random.chance(0.5F) ? specials[random.index(std::size(specials))] : random.next();
  const int unused = 64 - bits;
  set_element_int(data.tensor(), i,
                  dtype.is_int() ? static_cast<int64_t>(drawn << unused) >> unused
                                 : static_cast<int64_t>(drawn << unused >> unused));
}

double rounding_of(DataType dtype) {
  if (dtype.is_bfloat16()) return 0x1p-8;
  return dtype == DataType::float_(16) ? 0x1p-11 : dtype == DataType::float_(32) ? 0x1p-24 : 0x1p-53;
}

// Up to rounding is within 8 roundings of a number of at most 8, or of the result where that is larger.
bool is_as_exact(const NDArray& want, const NDArray& got, Exactness exactness) {
  if (want.shape() != got.shape() || want.dtype() != got.dtype()) return false;
  if (!want.dtype().is_float()) return want.content_equal(got);
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double x = element_as_double(want.tensor(), i), y = element_as_double(got.tensor(), i);
    if (std::isnan(x) && std::isnan(y)) continue;
    if (x == y && (x != 0 || exactness != kToTheBit || std::signbit(x) == std::signbit(y))) continue;
    const double allowed = 8 * rounding_of(want.dtype()) * std::max(8.0, std::abs(x));
    if (exactness != kUpToRounding || !(std::abs(x - y) <= allowed)) return false;
  }
  return true;
}

std::string elements_of(const NDArray& data) {
  std::string text;
  for (int64_t i = 0; i < data.num_elements(); ++i) text += fmt::format(" {}", element_as_double(data.tensor(), i));
  return text + "\n";
}

// Returns in what the results of a law's two programs differ by more than it says, over drawn inputs.
std::optional<std::string> inexactness(const IRModule& before, const IRModule& after, const Row& row,
                                       Exactness exactness, uint64_t seed) {
  kit::Random random(seed);
  std::vector<NDArray> inputs;
  std::string shown;
  for (const relay::Var& param : entry_of(before).params) {
    const TensorTypeNode& type = tensor_type_of(param);
    inputs.push_back(NDArray::empty(type.concrete_shape(), type.dtype));
    for (int64_t i = 0; i < inputs.back().num_elements(); ++i) draw_element(random, inputs.back(), i);
    shown += elements_of(inputs.back());
  }
  const auto want = interp::run_main(before, inputs), got = interp::run_main(after, inputs);
  if (want.size() != got.size()) return fmt::format("{} results became {}", want.size(), got.size());
  for (size_t r = 0; r < want.size(); ++r) {
    if (is_as_exact(want[r], got[r], exactness)) continue;
    return fmt::format("{}\n{}{}seed {}, inputs\n{}before{}after{}", row.law, relay::print_module(before),
                       relay::print_module(after), seed, shown, elements_of(want[r]), elements_of(got[r]));
  }
  return std::nullopt;
}

void expect_as_exact(const IRModule& before, const IRModule& after, const Row& row, Exactness exactness,
                     uint64_t seed) {
  if (const auto inexact = inexactness(before, after, row, exactness, seed)) FAIL() << *inexact;
}

inline void PrintTo(const ElementDtype& dtype, std::ostream* out) { *out << dtype.name; }

class SimplifyDtype : public testing::TestWithParam<ElementDtype> {};

TEST_P(SimplifyDtype, LawsHoldForEveryElement) {
  int num_used = 0;
  for (const Row& row : kRows) {
    const IRModule before = program_in(row, GetParam());
    if (!before) continue;
    ++num_used;
    const pass::PassContext context = context_of(row);
    pass::PassContext below = context;
    below.opt_level = simplify::kRoundingLevel - 1;
    const IRModule after = run_pass("SimplifyExpr", before, context),
                   after_below = run_pass("SimplifyExpr", before, below);
    const uint64_t seeds = kit::options().size == kit::TestSize::kFew ? 2 : 8;
    for (uint64_t seed = 1; seed <= seeds; ++seed) {
      expect_as_exact(before, after, row, row.exactness, seed);
      expect_as_exact(before, after_below, row, std::min(row.exactness, kButForTheSignOfZero), seed);
    }
  }
  EXPECT_GE(num_used, GetParam().least_used);
}

INSTANTIATE_TEST_SUITE_P(All, SimplifyDtype, testing::ValuesIn(kDtypes),
                         [](const auto& info) { return std::string(info.param.name); });

// A law's program in some dtype, whose literals are numbers of any magnitude in place of those of its row.
struct DrawnLaw {
  const Row* row = nullptr;
  const ElementDtype* dtype = nullptr;
  std::string before = {};
  uint64_t seed = 0;
};

DrawnLaw draw_law(kit::Random& random) {
  static const std::regex kLiteral("([( ])-?[0-9.]+(?:e[-+]?[0-9]+)?f(?=[,)])");
  DrawnLaw drawn{.row = &kRows[random.index(std::size(kRows))], .dtype = &kDtypes[random.index(4)]};  // a float
  std::string rest = drawn.row->before;
  for (std::smatch match; std::regex_search(rest, match, kLiteral); rest = match.suffix()) {
    const int most = drawn.dtype->name == std::string_view("float16") ? 14 : 120;
    const double magnitude = std::ldexp(1 + random.uniform(), static_cast<int>(random.integer(-most, most)));
    const double value = random.chance(0.2F) ? 0 : random.chance(0.3F) ? 1 : magnitude;
    drawn.before +=
        match.prefix().str() + match[1].str() + fmt::format("{}{:.9g}f", random.chance(0.5F) ? "-" : "", value);
  }
  drawn.before += rest;
  drawn.seed = random.next();
  return drawn;
}

// Below the level of laws that round, no law changes more than the sign of a zero, whatever its constants are. What the
// others may change is stated in docs/numerics.md, and tested beside the page (Numerics.*).
TEST(SimplifyLaw, AnyConstantsKeepTheResultsBelowTheRoundingLevel) {
  int num_programs = 0, num_changed = 0;
  kit::Property<DrawnLaw> property;
  property.runs_ci = 1500;
  property.runs_full = 200000;
  property.generate = draw_law;
  property.show = [](const DrawnLaw& drawn) {
    return fmt::format("{} of {}: {}", drawn.row->law, drawn.dtype->name, drawn.before);
  };
  property.check = [&](const DrawnLaw& drawn) -> std::optional<std::string> {
    Row row = *drawn.row;
    row.before = drawn.before.c_str();
    const IRModule before = program_in(row, *drawn.dtype);
    if (!before) return std::nullopt;
    pass::PassContext below = context_of(row);
    below.opt_level = simplify::kRoundingLevel - 1;
    const IRModule after = run_pass("SimplifyExpr", before, below);
    num_programs += 1;
    num_changed += structural_equal(before, after) ? 0 : 1;
    return inexactness(before, after, row, kButForTheSignOfZero, drawn.seed);
  };
  EXPECT_TRUE(kit::holds(property));
  if (kit::options().seed || kit::options().size == kit::TestSize::kList) return;
  EXPECT_GT(num_programs, kit::options().size == kit::TestSize::kFew ? 90 : 700);
  EXPECT_GT(num_changed, kit::options().size == kit::TestSize::kFew ? 30 : 300);
}

// Called by its name the pass leaves what Relay leaves, and takes Relay's own laws.
TEST(SimplifyExpr, ByNameItIsRelays) {
  const char* program =
      "def @main(%x: Tensor[(1, 3, 2), float32]) {\n"
      "  (subtract(0f, %x), transpose(%x, axes=[1, 2, 0]), collapse_sum_to(%x, shape=[3, 2]), add(%x, %x))\n}";
  EXPECT_EQ(relay::print_module(run_pass("SimplifyExpr", read(program))),
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(1, 3, 2), float32]) {\n"
            "  %0 = subtract(0f, %x);\n"
            "  %1 = transpose(%x, axes=[1, 2, 0]);\n"
            "  %2 = collapse_sum_to(%x, shape=[3, 2]);\n"
            "  %3 = multiply(%x, 2f);\n"
            "  (%0, %1, %2, %3)\n"
            "}\n");
}

// A reading of a reference stays where it is, and happens.
TEST(SimplifyExpr, EffectsStay) {
  const char* body = "subtract(%x, negative(ref_read(%r)))";
  const IRModule before = read(fmt::format("def @main({}) {{ let %r = ref(exp(%x)); {} }}", kFloat, body));
  EXPECT_EQ(run_pass("SimplifyExpr", before)->lookup("main"), before->lookup("main"));
}

// Expressions in braces are bound before, in their order; the laws apply to the results.
TEST(SimplifyExpr, EffectsInBracesKeepTheirOrder) {
  const std::string head = "def @main(%x: float32, %y: float32) { let %r = ref(exp(%x)); ";
  EXPECT_EQ(relay::print_module(run_pass(
                "SimplifyExpr", read(head + "add(negative(ref_read(%r)), { let %_ = ref_write(%r, %x); %y }) }"))),
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: float32, %y: float32) {\n"
            "  %0 = exp(%x);\n"
            "  let %r = ref(%0);\n"
            "  let %x_1 = ref_read(%r);\n"
            "  let %_ = ref_write(%r, %x);\n"
            "  subtract(%y, %x_1)\n"
            "}\n");
}

TEST(SimplifyExpr, AKnownBranchMayHaveEffects) {
  const IRModule before = read(
      "def @main(%x: Tensor[(2), float32]) { let %r = ref(%x);\n"
      "  let %_ = if (True) { ref_write(%r, exp(%x)) } else { () }; ref_read(%r) }");
  const IRModule after = run_pass("SimplifyExpr", before);
  relay::post_order(after->lookup("main"), [](const Expr& e) { EXPECT_FALSE(e.is<relay::IfNode>()); });
  expect_same_results(before, after, {ramp({2}, 0)}, 0);
}

// A function that was rewritten has no type; the branch that is chosen may be one.
TEST(SimplifyExpr, ABranchMayBeAFunctionThatWasRewritten) {
  const IRModule before = read(
      "def @main(%x: int32) -> int32 {\n"
      "  let %f = if (True) { fn (%y: int32) -> int32 { multiply(%y, 1) } } else { fn (%y: int32) -> int32 { %y } };\n"
      "  %f(%x)\n}");
  const IRModule after = run_pass("SimplifyExpr", run_pass("SimplifyExpr", before));
  EXPECT_EQ(relay::print_module(after).find("if ("), std::string::npos) << relay::print_module(after);
}

TEST(SimplifyExpr, KnowsLargeZerosAndOnes) {
  const IRModule after = run_pass("SimplifyExpr", read("def @main(%x: Tensor[(5000, 4), float32]) {"
                                                       " multiply(add(%x, zeros(shape=[5000, 4])),"
                                                       " full(1f, shape=[5000, 4], dtype=\"float32\")) }"));
  EXPECT_TRUE(after->lookup("main").cast<relay::FunctionNode>()->body.is<relay::VarNode>());
  const IRModule other = run_pass("SimplifyExpr", read("def @main(%x: Tensor[(5000, 4), float32]) {"
                                                       " add(%x, ones(shape=[5000, 4])) }"));
  EXPECT_TRUE(other->lookup("main").cast<relay::FunctionNode>()->body.is<relay::CallNode>());
}

}  // namespace
}  // namespace headrace::passes
