// Compares every rule of FirstOrderGradient with differences of the function, in float64.
//
// A case's program is exp(0.3 * body), so that the gradient flowing into the op differs from element to element.
#include "passes/gradient/gradient_rules.h"

#include <set>

#include "passes/tests/gradient_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

struct RuleCase {
  const char* name;
  std::string params;
  const char* body;
};
void PrintTo(const RuleCase& c, std::ostream* out) { *out << c.body; }

std::string rule_program(const RuleCase& c) {
  return fmt::format("def @main({}) {{\n  let %r = {{ {} }};\n  exp(multiply(%r, 0.3f64))\n}}", c.params, c.body);
}

// Between 0.2 and 0.9, no two alike: no ties, no kinks, inside the domain of every function.
std::vector<NDArray> rule_inputs(const IRModule& module) {
  kit::Random random(11);
  std::vector<NDArray> args;
  for (const relay::Var& param : module->lookup("main").as<relay::FunctionNode>()->params) {
    const auto& type = *param->checked_type().as<TensorTypeNode>();
    NDArray data = NDArray::empty(type.concrete_shape(), type.dtype);
    for (int64_t i = 0; i < data.num_elements(); ++i) set_element(data.tensor(), i, random.uniform(0.2f, 0.9f));
    args.push_back(data);
  }
  return args;
}

class GradientOfOpTest : public testing::TestWithParam<RuleCase> {};

TEST_P(GradientOfOpTest, AgreesWithDifferences) {
  const IRModule before = read(rule_program(GetParam()));
  const IRModule after = run_pass("FirstOrderGradient", before);
  EXPECT_LT(worst_error(before, after, rule_inputs(before)), 1e-6) << relay::print_module(after);
}

const std::string kMatrix = "%x: Tensor[(2, 3), float64]";
const std::string kMatrixAndRow = kMatrix + ", %y: Tensor[(3), float64]";
const std::string kCube = "%b: Tensor[(2, 3, 4), float64]";
const std::string kCubeAndScales = kCube + ", %g: Tensor[(4), float64], %h: Tensor[(4), float64]";
const std::string kFourChannels = "%i: Tensor[(1, 4, 4, 4), float64]";

INSTANTIATE_TEST_SUITE_P(
    Unary, GradientOfOpTest,
    testing::Values(RuleCase{"Tan", kMatrix, "tan(%x)"}, RuleCase{"Asin", kMatrix, "asin(%x)"},
                    RuleCase{"Acos", kMatrix, "acos(%x)"}, RuleCase{"Atan", kMatrix, "atan(%x)"},
                    RuleCase{"Sinh", kMatrix, "sinh(%x)"}, RuleCase{"Cosh", kMatrix, "cosh(%x)"},
                    RuleCase{"Asinh", kMatrix, "asinh(%x)"}, RuleCase{"Acosh", kMatrix, "acosh(add(%x, 1f64))"},
                    RuleCase{"Atanh", kMatrix, "atanh(%x)"}, RuleCase{"Log2", kMatrix, "log2(%x)"},
                    RuleCase{"Log10", kMatrix, "log10(%x)"}, RuleCase{"CastLike", kMatrixAndRow, "cast_like(%x, %y)"},
                    RuleCase{"Dropout", kMatrix, "%0 = nn.dropout(exp(%x)); %0.0"},
                    RuleCase{"Prelu", kMatrixAndRow, "nn.prelu(subtract(%x, 0.5f64), %y)"},
                    RuleCase{"PreluInTheMiddle", kCube + ", %y: Tensor[(3), float64]",
                             "nn.prelu(subtract(%b, 0.5f64), %y, axis=-2)"},
                    RuleCase{"OnDevice", kMatrix,
                             "on_device(device_copy(exp(%x), src_virtual_device=\"cpu\", dst_virtual_device=\"cpu\"), "
                             "virtual_device=\"cpu\")"},
                    RuleCase{"Likes", kMatrix, "multiply(add(zeros_like(%x), ones_like(%x)), %x)"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Binary, GradientOfOpTest,
    testing::Values(RuleCase{"PowerOfZeros", kMatrix, "add(power(subtract(%x, %x), zeros_like(%x)), %x)"},
                    RuleCase{"PowerOfAZero", kMatrix, "add(power(subtract(%x, %x), 0f64), %x)"},
                    RuleCase{"Mod", kMatrixAndRow, "mod(multiply(%x, 5f64), negative(%y))"},
                    RuleCase{"TruncMod", kMatrixAndRow, "trunc_mod(multiply(subtract(%x, 0.5f64), 9f64), %y)"},
                    RuleCase{"FloorMod", kMatrixAndRow, "floor_mod(multiply(subtract(%x, 0.5f64), 9f64), %y)"},
                    RuleCase{"WholeQuotients", kMatrixAndRow,
                             "multiply(add(floor_divide(%x, %y), trunc_divide(multiply(%x, 7f64), %y)), %x)"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Shape, GradientOfOpTest,
    testing::Values(
        RuleCase{"Stack", kMatrix, "stack((%x, exp(%x), %x), axis=1)"},
        RuleCase{"StackAtTheEnd", kMatrix, "stack((%x, exp(%x)), axis=-1)"},
        RuleCase{"StackOfAValue", kCube, "stack(split(exp(%b), indices_or_sections=3, axis=1), axis=0)"},
        RuleCase{"ConcatenateOfAValue", kCube,
                 "concatenate(split(exp(%b), indices_or_sections=[1, 3], axis=2), axis=-1)"},
        RuleCase{"Tile", kMatrix, "tile(%x, reps=[2, 1, 3])"}, RuleCase{"TileOfFewer", kCube, "tile(%b, reps=[2])"},
        RuleCase{"Repeat", kMatrix, "repeat(%x, repeats=3, axis=-1)"},
        RuleCase{"Full", "%x: float64", "add(full(%x, shape=[2, 3], dtype=\"float64\"), full_like(%x, exp(%x)))"},
        RuleCase{"Meshgrid", "%x: Tensor[(2), float64], %y: Tensor[(3), float64]",
                 "%0 = meshgrid((%x, %y), indexing=\"xy\"); multiply(%0.0, %0.1)"},
        RuleCase{"BroadcastToLike", kMatrixAndRow, "broadcast_to_like(%y, %x)"},
        RuleCase{"ReshapeLike", "%x: Tensor[(2, 3), float64], %y: Tensor[(3, 2), float64]",
                 "multiply(reshape_like(%x, %y), %y)"},
        RuleCase{"SliceLike", kMatrixAndRow, "slice_like(%x, zeros(shape=[1, 2]), axes=[1])"},
        RuleCase{"LayoutTransform", kFourChannels, "layout_transform(%i, src_layout=\"NCHW\", dst_layout=\"NHWC2c\")"},
        RuleCase{"Pad", "%x: Tensor[(2, 3), float64], %p: float64", "nn.pad(%x, %p, pad_width=[[1, 0], [0, 2]])"},
        RuleCase{"PadThatCrops", "%x: Tensor[(2, 3), float64], %p: float64",
                 "nn.pad(%x, %p, pad_width=[[1, 0], [-1, 2]])"},
        RuleCase{"PadReflects", kCube, "nn.pad(%b, 0f64, pad_width=[[0, 0], [2, 1], [1, 3]], pad_mode=\"reflect\")"},
        RuleCase{"PadRepeats", kMatrix, "nn.pad(%x, 0f64, pad_width=[[1, 0], [2, 1]], pad_mode=\"edge\")"},
        RuleCase{"PadReflectsAndCrops", kMatrix,
                 "nn.pad(%x, 0f64, pad_width=[[-1, 1], [2, -1]], pad_mode=\"reflect\")"},
        RuleCase{"MirrorPad", kMatrix, "nn.mirror_pad(%x, mode=\"SYMMETRIC\", pad_width=[[1, 0], [2, 1]])"},
        RuleCase{"MirrorPadReflects", kMatrix, "nn.mirror_pad(%x, mode=\"REFLECT\", pad_width=[[1, 0], [2, 1]])"},
        RuleCase{"Dilate", kMatrix, "nn.dilate(%x, strides=[2, 3])"},
        RuleCase{"Triu", kMatrix, "trilu(%x, 0i64, upper=True)"},
        RuleCase{"Tril", kCube, "trilu(%b, 1i64, upper=False)"},
        RuleCase{"SequenceMask", kMatrix, "sequence_mask(%x, const(Tensor[(3), int64], [1, 2, 0]), mask_value=0.5f)"},
        RuleCase{"ReverseSequence", kMatrix, "reverse_sequence(%x, const(Tensor[(2), int64], [3, 2]))"},
        RuleCase{"OneHot", "%x: float64, %y: float64",
                 "one_hot(const(Tensor[(3), int64], [1, 5, 0]), %x, %y, depth=4, dtype=\"float64\")"},
        RuleCase{"DepthToSpace", kFourChannels, "nn.depth_to_space(%i, block_size=2)"},
        RuleCase{"DepthToSpaceColumns", kFourChannels, "nn.depth_to_space(%i, block_size=2, mode=\"CRD\")"},
        RuleCase{"SpaceToDepth", kFourChannels, "nn.space_to_depth(%i, block_size=2)"},
        RuleCase{"SpaceToDepthNHWC", kFourChannels, "nn.space_to_depth(%i, block_size=2, layout=\"NHWC\")"},
        RuleCase{"SpaceToBatch", kFourChannels,
                 "nn.space_to_batch_nd(%i, block_shape=[3], paddings=[[1, 1]], pad_value=2f)"},
        RuleCase{"BatchToSpace", "%i: Tensor[(4, 3, 2), float64]",
                 "nn.batch_to_space_nd(%i, block_shape=[2], crops=[[1, 0]])"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Index, GradientOfOpTest,
    testing::Values(
        RuleCase{"SliceWithSteps", kCube, "strided_slice(%b, begin=[0, 2, 3], end=[2, 0, -5], strides=[1, -1, -2])"},
        RuleCase{"SliceOfSizes", kMatrix, "strided_slice(%x, begin=[0, 1], end=[-1, 2], slice_mode=\"size\")"},
        RuleCase{"TakeRows", kMatrix, "take(%x, const(Tensor[(2, 2), int64], [1, 0, 1, 1]), axis=0)"},
        RuleCase{"TakeInTheMiddle", kCube, "take(%b, const(Tensor[(2, 2), int32], [2, 0, 7, 2]), axis=1)"},
        RuleCase{"TakeAtTheEnd", kCube, "take(%b, const(Tensor[(3), int64], [3, -1, 5]), axis=-1, mode=\"wrap\")"},
        RuleCase{"TakeOne", kCube, "take(%b, 2i64, axis=1)"},
        RuleCase{"TakeOfAll", kMatrix, "take(%x, const(Tensor[(3), int64], [5, 0, 5]))"},
        RuleCase{"TakeOfEachBatch", kCube,
                 "take(%b, const(Tensor[(2, 2), int64], [2, 0, 1, 1]), batch_dims=1, axis=1)"},
        RuleCase{"Gather", kMatrix, "gather(%x, const(Tensor[(2, 2), int64], [2, 0, 1, -2]), axis=1)"},
        RuleCase{"GatherFewer", kCube, "gather(%b, const(Tensor[(1, 4, 2), int64], [2, 0, 1, 1, 0, 0, 0, 0]), axis=1)"},
        RuleCase{"GatherNd", kCube, "gather_nd(%b, const(Tensor[(2, 3), int64], [0, 1, 1, 2, -1, 2]))"},
        RuleCase{"GatherNdOfEachBatch", kCube, "gather_nd(%b, const(Tensor[(1, 2), int64], [2, 0]), batch_dims=1)"},
        RuleCase{"ScatterElements", kMatrix + ", %u: Tensor[(2, 2), float64]",
                 "scatter_elements(%x, const(Tensor[(2, 2), int64], [2, 0, 1, 1]), %u, axis=1)"},
        RuleCase{"ScatterElementsAdd", kMatrix + ", %u: Tensor[(2, 2), float64]",
                 "scatter_elements(%x, const(Tensor[(2, 2), int64], [2, 0, 1, 1]), %u, axis=1, reduction=\"add\")"},
        RuleCase{"ScatterNd", kMatrix + ", %u: Tensor[(3, 3), float64]",
                 "scatter_nd(%x, const(Tensor[(1, 3), int64], [1, 0, 1]), %u)"},
        RuleCase{"ScatterNdAdd", kMatrix + ", %u: Tensor[(3), float64]",
                 "scatter_nd(%x, const(Tensor[(2, 3), int64], [1, 0, 1, 2, 2, 2]), %u, mode=\"add\")"},
        RuleCase{"SlidingWindow", kMatrix, "sliding_window(%x, axis=0, window_shape=[2, 2], strides=[1, 1])"},
        RuleCase{"Arange", "%a: float64, %s: float64", "arange(%a, add(%a, 5.3f64), add(%s, 1f64), dtype=\"float64\")"},
        RuleCase{"YoloReorg", kFourChannels, "vision.yolo_reorg(%i, stride=2)"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Reduce, GradientOfOpTest,
    testing::Values(
        RuleCase{"Prod", kCube, "prod(%b, axis=[0, 2])"}, RuleCase{"ProdOfAll", kMatrix, "prod(%x, keepdims=True)"},
        RuleCase{"ProdWithZeros", kMatrix, "prod(multiply(%x, const(Tensor[(3), float64], [0, 1, 2])), axis=[1])"},
        RuleCase{"Variance", kCube + ", %m: Tensor[(2, 1, 4), float64]", "variance(%b, %m, axis=[1])"},
        RuleCase{"VarianceUnbiased", kCube + ", %m: Tensor[(2, 3, 1), float64]",
                 "variance(%b, %m, axis=[0, 1], exclude=True, keepdims=True, unbiased=True)"},
        RuleCase{"CollapseSumTo", kCube, "collapse_sum_to(%b, shape=[3, 1])"},
        RuleCase{"CollapseSumLike", kCube + ", %y: Tensor[(4), float64]", "collapse_sum_like(%b, %y)"},
        RuleCase{"Cumsum", kCube, "cumsum(%b, axis=1)"}, RuleCase{"CumsumOfAll", kMatrix, "cumsum(%x, exclusive=True)"},
        RuleCase{"Cumprod", kCube, "cumprod(%b, axis=2)"},
        RuleCase{"CumprodOfAll", kMatrix, "cumprod(%x, exclusive=True)"}, RuleCase{"Sort", kCube, "sort(%b, axis=1)"},
        RuleCase{"SortDown", kCube, "sort(%b, is_ascend=False)"},
        RuleCase{"TopkValues", kCube, "topk(%b, k=2, ret_type=\"values\")"},
        RuleCase{"TopkBoth", kCube,
                 "%0 = topk(%b, k=2, axis=1, is_ascend=True); multiply(%0.0, cast(%0.1, dtype=\"float64\"))"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Matrix, GradientOfOpTest,
    testing::Values(RuleCase{"BatchMatmulOfOne", kCube + ", %c: Tensor[(1, 4, 2), float64]",
                             "nn.batch_matmul(%b, %c, transpose_b=False)"},
                    RuleCase{"BatchMatmulByOne", kCube + ", %c: Tensor[(1, 3, 2), float64]",
                             "nn.batch_matmul(%c, %b, transpose_a=True, transpose_b=False)"},
                    RuleCase{"EinsumMatrices", kMatrix + ", %y: Tensor[(3, 4), float64]",
                             "einsum((%x, %y), equation=\"ij,jk->ki\")"},
                    RuleCase{"EinsumThree", kCube + ", %x: Tensor[(3, 2), float64], %y: Tensor[(4), float64]",
                             "einsum((%b, %x, %y), equation=\"abc,be,c->ae\")"},
                    RuleCase{"EinsumSums", kCube + ", %x: Tensor[(3, 2), float64]",
                             "einsum((%b, %x), equation=\"abc,be->a\")"},
                    RuleCase{"EinsumRest", kCube + ", %x: Tensor[(1, 4, 2), float64]",
                             "einsum((%b, %x), equation=\"...ij,...jk\")"},
                    RuleCase{"EinsumOfAValue", kCube,
                             "einsum(split(exp(%b), indices_or_sections=2, axis=2), equation=\"aij,aik->ajk\")"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Convolution, GradientOfOpTest,
    testing::Values(
        RuleCase{"Conv1D", "%x: Tensor[(2, 2, 6), float64], %k: Tensor[(3, 2, 2), float64]",
                 "nn.conv1d(%x, %k, strides=[2], padding=[1, 0], dilation=[2])"},
        RuleCase{"Conv1DGroups", "%x: Tensor[(2, 5, 4), float64], %k: Tensor[(2, 4, 2), float64]",
                 "nn.conv1d(%x, %k, groups=2, padding=[1, 1], data_layout=\"NWC\", kernel_layout=\"WOI\")"},
        RuleCase{"Conv3D", "%x: Tensor[(1, 2, 3, 3, 4), float64], %k: Tensor[(2, 2, 2, 1, 2), float64]",
                 "nn.conv3d(%x, %k, strides=[1, 2, 2], padding=[1, 0, 0, 0, 0, 1])"},
        RuleCase{"Conv3DDepthwise", "%x: Tensor[(1, 2, 2, 2, 3), float64], %k: Tensor[(4, 1, 1, 2, 2), float64]",
                 "nn.conv3d(%x, %k, groups=2)"},
        RuleCase{"Conv1DTranspose", "%x: Tensor[(2, 2, 3), float64], %k: Tensor[(2, 3, 2), float64]",
                 "nn.conv1d_transpose(%x, %k, strides=[2], padding=[1, 0], output_padding=[1])"},
        RuleCase{"Conv2DTranspose", "%x: Tensor[(1, 2, 3, 2), float64], %k: Tensor[(2, 2, 3, 2), float64]",
                 "nn.conv2d_transpose(%x, %k, strides=[2, 1], padding=[1, 0, 0, 1], dilation=[1, 2], "
                 "output_padding=[1, 0])"},
        RuleCase{"Conv1DTransposeBeyondTheStride", "%x: Tensor[(2, 3, 2), float64], %k: Tensor[(2, 3, 2), float64]",
                 "nn.conv1d_transpose(%x, %k, padding=[0, 1], output_padding=[3], data_layout=\"NWC\", "
                 "kernel_layout=\"WOI\")"},
        RuleCase{"Conv2DTransposeBeyondTheStride",
                 "%x: Tensor[(1, 2, 3, 2), float64], %k: Tensor[(2, 2, 3, 2), float64]",
                 "nn.conv2d_transpose(%x, %k, strides=[2, 1], padding=[1, 0, 0, 1], output_padding=[3, 2])"},
        RuleCase{"Conv2DTransposeGroups", "%x: Tensor[(1, 3, 2, 4), float64], %k: Tensor[(2, 2, 3, 4), float64]",
                 "nn.conv2d_transpose(%x, %k, groups=2, data_layout=\"NHWC\", kernel_layout=\"HWOI\")"},
        RuleCase{"Conv3DTranspose", "%x: Tensor[(1, 2, 2, 2, 2), float64], %k: Tensor[(2, 1, 2, 1, 2), float64]",
                 "nn.conv3d_transpose(%x, %k, strides=[1, 2, 1])"},
        RuleCase{"Conv2DBackwardWeight", "%g: Tensor[(1, 2, 2, 3), float64], %x: Tensor[(1, 2, 4, 4), float64]",
                 "nn.conv2d_backward_weight(%g, %x, strides=[2, 1], kernel_size=[2, 2], groups=2)"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Window, GradientOfOpTest,
    testing::Values(
        RuleCase{"MaxPool1D", kCube, "nn.max_pool1d(%b, pool_size=[2], strides=[2], padding=[1, 0])"},
        RuleCase{"AvgPool1D", kCube, "nn.avg_pool1d(%b, pool_size=[2], padding=[1, 1], layout=\"NWC\")"},
        RuleCase{"AvgPool2DGrad", "%g: Tensor[(1, 1, 2, 3), float64]",
                 "nn.avg_pool2d_grad(%g, zeros(shape=[1, 1, 4, 4], dtype=\"float64\"), pool_size=[2, 2], "
                 "strides=[2, 1])"},
        RuleCase{"GlobalMaxPool", kFourChannels, "nn.global_max_pool2d(%i)"},
        RuleCase{"GlobalMaxPoolNHWC", kFourChannels, "nn.global_max_pool2d(%i, layout=\"NHWC\", out_layout=\"NCHW\")"},
        RuleCase{"GlobalAvgPoolNHWC", kFourChannels, "nn.global_avg_pool2d(%i, layout=\"NHWC\", out_layout=\"NCHW\")"},
        RuleCase{"AdaptiveAvgPool", kFourChannels, "nn.adaptive_avg_pool2d(%i, output_size=[3, 2])"},
        RuleCase{"AdaptiveAvgPoolPacked", "%i: Tensor[(1, 2, 2, 3, 4), float64]",
                 "nn.adaptive_avg_pool2d(%i, output_size=[2, 3], layout=\"NC2cHW\")"},
        RuleCase{"AdaptiveAvgPool1D", kCube, "nn.adaptive_avg_pool1d(%b, output_size=[2], layout=\"NWC\")"},
        RuleCase{"ResizeLinear", kFourChannels, "image.resize2d(%i, size=[6, 3])"},
        RuleCase{"ResizeNearest", kFourChannels,
                 "image.resize2d(%i, size=[3, 7], method=\"nearest_neighbor\", layout=\"NHWC\", "
                 "coordinate_transformation_mode=\"asymmetric\", rounding_method=\"floor\")"},
        RuleCase{"ResizeCubic", kFourChannels,
                 "image.resize2d(%i, size=[5, 4], method=\"cubic\", coordinate_transformation_mode=\"align_corners\")"},
        RuleCase{"Resize1D", kCube, "image.resize1d(%b, size=[6])"},
        RuleCase{"Upsampling", kFourChannels, "nn.upsampling(%i, scale_h=2f, scale_w=1.5f)"},
        RuleCase{"UpsamplingBilinear", kFourChannels,
                 "nn.upsampling(%i, scale_h=2f, scale_w=2f, method=\"bilinear\", align_corners=True)"},
        RuleCase{"Upsampling3D", "%i: Tensor[(1, 1, 2, 2, 3), float64]",
                 "nn.upsampling3d(%i, scale_d=2f, scale_h=1f, scale_w=2f, method=\"trilinear\")"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Normalize, GradientOfOpTest,
    testing::Values(
        RuleCase{"LayerNorm", kCubeAndScales, "nn.layer_norm(%b, %g, %h, epsilon=0.1f)"},
        RuleCase{"LayerNormAxis", kCube + ", %g: Tensor[(3), float64], %h: Tensor[(3), float64]",
                 "nn.layer_norm(%b, %g, %h, axis=1, epsilon=0.1f, scale=False)"},
        RuleCase{"InstanceNorm", kCubeAndScales, "nn.instance_norm(%b, %g, %h, axis=2, epsilon=0.1f)"},
        RuleCase{"GroupNorm", kFourChannels + ", %g: Tensor[(4), float64], %h: Tensor[(4), float64]",
                 "nn.group_norm(%i, %g, %h, num_groups=2, epsilon=0.1f, center=False)"},
        RuleCase{"GroupNormAxis", kCubeAndScales, "nn.group_norm(%b, %g, %h, num_groups=2, axis=-1, epsilon=0.1f)"},
        RuleCase{"BatchNorm", kCubeAndScales + ", %m: Tensor[(4), float64], %v: Tensor[(4), float64]",
                 "%0 = nn.batch_norm(%b, %g, %h, %m, %v, axis=2); add(%0.0, multiply(%0.1, %0.2))"},
        RuleCase{"L2Normalize", kCube, "nn.l2_normalize(%b, eps=0.01f, axis=[1])"},
        RuleCase{"L2NormalizeAll", kMatrix, "nn.l2_normalize(%x, eps=0.01f)"},
        RuleCase{"L2NormalizeSmall", kCube, "nn.l2_normalize(%b, eps=1f, axis=[1])"},
        RuleCase{"Lrn", kFourChannels, "nn.lrn(%i, size=3, bias=1f, alpha=0.5f)"},
        RuleCase{"LrnEven", kCube, "nn.lrn(%b, size=2, axis=2, bias=1f, alpha=0.5f, beta=1.5f)"},
        RuleCase{"FastSoftmax", kMatrix, "nn.fast_softmax(%x)"},
        RuleCase{"CrossEntropy", "%x: Tensor[(2, 3), float64], %y: Tensor[(2, 3), float64]",
                 "nn.cross_entropy(%x, %y)"},
        RuleCase{"CrossEntropyWithLogits", "%x: Tensor[(2, 3), float64], %y: Tensor[(2, 3), float64]",
                 "nn.cross_entropy_with_logits(%x, %y)"},
        RuleCase{"NllLossMean", kMatrixAndRow, "nn.nll_loss(%x, const(Tensor[(2), int64], [2, 0]), %y)"},
        RuleCase{"NllLossIgnores", kMatrixAndRow,
                 "nn.nll_loss(%x, const(Tensor[(2), int64], [2, 0]), %y, reduction=\"sum\", ignore_index=0)"},
        RuleCase{"NllLossOfPixels", kCube + ", %y: Tensor[(3), float64]",
                 "nn.nll_loss(%b, const(Tensor[(2, 4), int32], [2, 0, 1, 1, 0, 0, 2, 1]), %y, reduction=\"none\")"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(GradientRules, RefusedCalls) {
  const auto error = [](const std::string& params, const char* body) {
    const IRModule module = read(fmt::format("def @main({}) {{ {} }}", params, body));
    try {
      run_pass("FirstOrderGradient", module);
    } catch (const UserError& e) {
      return e.message().substr(0, e.message().find('\n'));
    }
    return std::string("no error");
  };
  const std::string scattered = kMatrix + ", %u: Tensor[(2, 2), float64]";
  EXPECT_EQ(error(scattered,
                  "scatter_elements(%x, const(Tensor[(2, 2), int64], [2, 0, 1, 1]), %u, axis=1, "
                  "reduction=\"mul\")"),
            "scatter_elements: no gradient where updates are joined by 'mul'");
  EXPECT_EQ(error("%x: Tensor[(2, 2), float64]", "einsum((%x,), equation=\"ii->i\")"),
            "einsum: no gradient where an operand has one axis twice, as operand 0 of 'ii->i'");
  std::string ones = "1";
  for (int i = 1; i < 53; ++i) ones += ", 1";
  EXPECT_EQ(error("%x: Tensor[(" + ones + "), float64]", "einsum((%x,), equation=\"...\")"),
            "einsum: no gradient of an equation with more than 52 axes");
  EXPECT_EQ(error("%x: Tensor[(n), float64]", "einsum((%x,), equation=\"i->\")"),
            "einsum: no gradient where an axis of unknown size is only summed up, as in 'i->'");
  EXPECT_EQ(error("%x: Tensor[(n), float64], %y: Tensor[(2), float64]", "concatenate((%x, %y))"),
            "concatenate: no gradient where a part is of unknown size along the axis: Tensor[(n), float64]");
  EXPECT_EQ(error(kMatrix + ", %w: Tensor[(2, 2), int64]", "nn.pad(%x, %w, 0f64)"),
            "nn.pad: no gradient where the widths are an argument; DynamicToStatic makes constant ones attributes");
  EXPECT_EQ(error("%x: Tensor[(1, 1, 2, 2, 2), float64]", "nn.global_max_pool2d(%x, layout=\"NCHW2c\")"),
            "nn.global_max_pool2d: no gradient in layout NCHW2c, which has axes in parts; see ConvertLayout");
  EXPECT_EQ(error("%x: Tensor[(1, 1, 2, 2), float64]", "nn.max_pool1d(%x, layout=\"NCW2c\")"),
            "nn.max_pool1d: no gradient in layout NCW2c, which has axes in parts; see ConvertLayout");
  EXPECT_EQ(error("%x: Tensor[(1, 1, 2, 2), float64]",
                  "nn.adaptive_avg_pool2d(%x, output_size=[1, 1], layout=\"NCHW\", out_layout=\"NHWC\")"),
            "nn.adaptive_avg_pool2d: no gradient from layout NCHW to NHWC");
}

TEST(GradientOfPad, HasTheDtypesOfItsArguments) {
  const IRModule after = run_pass("FirstOrderGradient", read("def @main(%x: Tensor[(2), float32], %p: float64) {\n"
                                                             "  nn.pad(%x, %p, pad_width=[[1, 2]])\n"
                                                             "}"));
  EXPECT_EQ(relay::type_text(after->lookup("main").as<relay::FunctionNode>()->body->checked_type()),
            "(Tensor[(5), float32], (Tensor[(2), float32], float64))");
  const auto results =
      interp::run_main(after, {ramp({2}, 1), NDArray::from_vector<double>({}, DataType::float_(64), {2})});
  EXPECT_EQ(element_as_double(results.back().tensor(), 0), 3.0);
}

// Takes the gradient of the gradient: the ops that rules make have rules in turn.
class SecondGradientTest : public testing::TestWithParam<RuleCase> {};

TEST_P(SecondGradientTest, AgreesWithDifferences) {
  // Each pass gives (result, gradients), so the second differentiates the sum of both.
  const IRModule once = run_pass("FirstOrderGradient", read(rule_program(GetParam())));
  const IRModule twice = run_pass("FirstOrderGradient", once);
  EXPECT_LT(worst_error(once, twice, rule_inputs(once)), 1e-6) << relay::print_module(twice);
}

INSTANTIATE_TEST_SUITE_P(
    Ops, SecondGradientTest,
    testing::Values(
        RuleCase{"Elementwise", kMatrix, "atan(multiply(tanh(%x), sinh(%x)))"},
        RuleCase{"Softmax", kMatrix, "nn.softmax(%x)"},
        RuleCase{"Dense", kMatrix + ", %w: Tensor[(2, 3), float64]", "nn.dense(%x, %w)"},
        RuleCase{"Take", kMatrix, "take(multiply(%x, %x), const(Tensor[(3), int64], [1, 0, 1]), axis=0)"},
        RuleCase{"Sort", kMatrix, "sort(multiply(%x, %x))"}, RuleCase{"Prod", kMatrix, "prod(%x, axis=[1])"},
        RuleCase{"Cumsum", kMatrix, "cumsum(multiply(%x, %x), axis=0)"},
        RuleCase{"LayerNorm", kMatrixAndRow + ", %z: Tensor[(3), float64]", "nn.layer_norm(%x, %y, %z, epsilon=0.1f)"},
        RuleCase{"Conv", "%x: Tensor[(1, 2, 3, 3), float64], %k: Tensor[(2, 2, 2, 2), float64]",
                 "nn.conv2d(%x, %k, padding=[1, 0])"},
        RuleCase{"AvgPool", "%x: Tensor[(1, 1, 3, 3), float64]", "nn.avg_pool2d(multiply(%x, %x), pool_size=[2, 2])"},
        RuleCase{"Resize", "%x: Tensor[(1, 1, 2, 2), float64]", "image.resize2d(multiply(%x, %x), size=[3, 3])"},
        RuleCase{"Einsum", kMatrix + ", %y: Tensor[(3, 2), float64]", "einsum((%x, %y), equation=\"ij,jk->ik\")"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace headrace::passes
