#include "passes/layout/convert_layout.h"

#include <gmock/gmock.h>

#include "kit/errors.h"
#include "kit/relay_programs.h"
#include "object/function.h"
#include "ops/nn/conv.h"
#include "ops/nn/normalization.h"
#include "ops/nn/pool.h"
#include "ops/tensor/shape.h"
#include "passes/tests/golden_pass.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// Convolutions and pools in that layout.
DesiredLayouts packed(const std::string& layout) {
  DesiredLayouts desired;
  for (const char* op : {"nn.conv2d", "nn.max_pool2d"}) desired.set(op, Array<std::string>{layout});
  return desired;
}

DesiredLayouts nhwc() {
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{"NHWC", "OHWI"});
  desired.set("nn.max_pool2d", Array<std::string>{"NHWC"});
  return desired;
}

pass::PassContext with_layouts(const DesiredLayouts& desired) {
  pass::PassContext context = typed_context();
  context.config.set("relay.ConvertLayout.desired_layouts", Value(desired));
  return context;
}

// Groups made by FuseOps stay as they are.
TEST(ConvertLayout, AfterFuseOps) {
  const IRModule fused = run_pass("FuseOps", relay::infer_type(program_before(read_golden("convert_layout"))));
  const IRModule after = run_pass("ConvertLayout", fused, with_layouts(nhwc()));
  EXPECT_EQ(relay::print_module(after), relay::print_module(fused));
}

// The block of a network, "%0, %1, ..." of @main(%x), in packed layouts with its weights folded; as it was otherwise.
void expect_two_borders(const std::string& type, const std::string& body, const std::string& layout, int convolutions) {
  const IRModule before = run_pass("SimplifyInference", read(fmt::format("def @main(%x: {}) {{\n{}}}", type, body)));
  IRModule after = run_pass("ConvertLayout", before, with_layouts(packed(layout)));
  for (const char* pass : {"FoldConstant", "SimplifyExpr"}) after = run_pass(pass, after);
  EXPECT_EQ(count_calls(after, "layout_transform"), 2) << relay::print_module(after);
  EXPECT_EQ(count_calls(after, "expand_dims"), 0) << relay::print_module(after);
  const std::string text = relay::print_module(after);
  int packed_convolutions = 0;
  for (size_t at = text.find(fmt::format("data_layout=\"{}\"", layout)); at != std::string::npos;
       at = text.find(fmt::format("data_layout=\"{}\"", layout), at + 1))
    ++packed_convolutions;
  EXPECT_EQ(packed_convolutions, convolutions) << text;
  kit::Random random(7);
  expect_same_results(before, after, kit::random_inputs(before, random), 1e-4);
}

// zeros, ones and the like would hide channels that are mixed up: weights count from -1 in small steps.
std::string ramp_text(const Shape& shape) {
  const int64_t count = num_elements(shape);
  return fmt::format("reshape(subtract(multiply(arange(0f, {}f, 1f, dtype=\"float32\"), {}f), 1f), newshape=[{}])",
                     count, 2.0 / static_cast<double>(count), fmt::join(shape, ", "));
}

std::string batch_norm(const std::string& data, int64_t channels) {
  const std::string gamma = ramp_text({channels}), beta = ramp_text({channels});
  return fmt::format("nn.batch_norm({}, {}, {}, {}, multiply({}, {})).0", data, gamma, beta, beta, gamma, gamma);
}

// The block of a residual network that halves the plane: two ways that are added, each from the one input.
TEST(ConvertLayout, AResNetBlockHasTwoBorders) {
  const std::string body =
      fmt::format("  %0 = nn.conv2d(%x, {}, strides=[2, 2], padding=[1, 1]);\n  %1 = nn.relu({});\n",
                  ramp_text({16, 8, 3, 3}), batch_norm("%0", 16)) +
      fmt::format("  %2 = nn.conv2d(%1, {}, padding=[1, 1]);\n  %3 = {};\n", ramp_text({16, 16, 3, 3}),
                  batch_norm("%2", 16)) +
      fmt::format("  %4 = nn.conv2d(%x, {}, strides=[2, 2]);\n  nn.relu(add(%3, {}))\n", ramp_text({16, 8, 1, 1}),
                  batch_norm("%4", 16));
  expect_two_borders("Tensor[(1, 8, 6, 6), float32]", body, "NCHW8c", 3);
}

// Inverted residual: 1x1 up, depthwise, 1x1 down, the input added.
TEST(ConvertLayout, AMobileNetBlockHasTwoBorders) {
  const std::string body =
      fmt::format("  %0 = nn.conv2d(%x, {});\n  %1 = clip({}, a_min=0f, a_max=6f);\n", ramp_text({16, 8, 1, 1}),
                  batch_norm("%0", 16)) +
      fmt::format("  %2 = nn.conv2d(%1, {}, padding=[1, 1], groups=16);\n  %3 = clip({}, a_min=0f, a_max=6f);\n",
                  ramp_text({16, 1, 3, 3}), batch_norm("%2", 16)) +
      fmt::format("  %4 = nn.bias_add(nn.conv2d(%3, {}), {});\n  add(%x, %4)\n", ramp_text({8, 16, 1, 1}),
                  ramp_text({8}));
  for (const char* layout : {"NCHW4c", "NCHW8c"}) expect_two_borders("Tensor[(1, 8, 5, 5), float32]", body, layout, 3);
}

// The kernel of a depthwise convolution has no input channels to split; channels that a block does not divide stay.
TEST(ConvertLayout, BlocksThatDoNotFit) {
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{"NCHW8c", "OIHW8i8o"});
  const auto converted = [&](const char* data, const char* weight, int groups) {
    const IRModule before =
        read(fmt::format("def @main(%x: Tensor[{}, float32], %w: Tensor[{}, float32]) {{\n"
                         "  nn.conv2d(%x, %w, groups={})\n}}",
                         data, weight, groups));
    return relay::print_module(run_pass("ConvertLayout", before, with_layouts(desired)));
  };
  EXPECT_NE(converted("(1, 16, 3, 3)", "(16, 1, 3, 3)", 16).find("OIHW1i8o"), std::string::npos);
  EXPECT_NE(converted("(1, 16, 3, 3)", "(8, 16, 3, 3)", 1).find("OIHW8i8o"), std::string::npos);
  for (const std::string& kept : {converted("(1, 3, 3, 3)", "(8, 3, 3, 3)", 1),       // input channels
                                  converted("(1, 8, 3, 3)", "(9, 8, 3, 3)", 1),       // output channels
                                  converted("(1, 16, 3, 3)", "(16, 4, 3, 3)", 4)}) {  // input channels of a group
    EXPECT_EQ(kept.find("8c"), std::string::npos) << kept;
  }
}

// The kernel that an op has beside such data, whatever it had: backends know it by its usual layout.
TEST(ConvertLayout, TheDefaultOfAKernelIsTheUsualOne) {
  const auto kernel_of = [](const char* op, const char* layout) {
    const IRModule before =
        read(fmt::format("def @main(%x: Tensor[(1, 5, 5, 2), float32], %w: Tensor[(3, 3, 2, 2), float32]) {{\n"
                         "  {}(%x, %w, data_layout=\"NHWC\", kernel_layout=\"{}\")\n}}",
                         op, layout));
    DesiredLayouts desired;
    desired.set(op, Array<std::string>{"NCHW", "default"});
    const IRModule after = run_pass("ConvertLayout", before, with_layouts(desired));
    expect_same_results(before, after, {ramp({1, 5, 5, 2}, -3), ramp({3, 3, 2, 2}, 1)});
    std::string found;
    relay::post_order(after->lookup("main"), [&](const Expr& e) {
      const auto* call = e.as<relay::CallNode>();
      if (call != nullptr && call->as_op()->name == op) found = call->attrs_as<ops::ConvAttrs>().kernel_layout;
    });
    return found;
  };
  EXPECT_EQ(kernel_of("nn.conv2d", "HWIO"), "OIHW");
  EXPECT_EQ(kernel_of("nn.conv2d", "HWOI"), "OIHW");
  EXPECT_EQ(kernel_of("nn.conv2d_transpose", "HWOI"), "IOHW");
}

// Between two layouts that are both other than written stands one transform.
TEST(ConvertLayout, FromOneLayoutToTheOther) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 8, 4, 4), float32], %w: Tensor[(8, 8, 1, 1), float32]) {\n"
      "  nn.max_pool2d(nn.conv2d(%x, %w), pool_size=[2, 2])\n}");
  DesiredLayouts desired = packed("NCHW8c");
  desired.set("nn.max_pool2d", Array<std::string>{"NHWC"});
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(desired));
  EXPECT_NE(relay::print_module(after).find("src_layout=\"NCHW8c\", dst_layout=\"NHWC\""), std::string::npos);
  EXPECT_EQ(count_calls(after, "layout_transform"), 4) << "of data, kernel, between, result\n"
                                                       << relay::print_module(after);
  expect_same_results(before, after, {ramp({1, 8, 4, 4}, 0), ramp({8, 8, 1, 1}, 1)});
}

// Layouts written in parts stay so.
TEST(ConvertLayout, PackedAsWrittenStays) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2, 4, 4, 4), float32], %w: Tensor[(2, 2, 1, 1, 4, 4), float32]) {\n"
      "  nn.max_pool2d(nn.conv2d(%x, %w, data_layout=\"NCHW4c\", kernel_layout=\"OIHW4i4o\"), pool_size=[2, 2],"
      " layout=\"NCHW4c\")\n}");
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(nhwc()));
  EXPECT_EQ(relay::print_module(after), relay::print_module(before));
}

// Runs `body` over %0, the result of a convolution with 8 channels, in the layout; the convolution has two transforms.
void expect_transforms(const std::string& body, const std::string& layout, int64_t transforms) {
  SCOPED_TRACE(layout + ": " + body);
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 4, 3, 5), float32], %w: Tensor[(8, 4, 1, 1), float32]) {\n  %0 = nn.conv2d(%x, %w);\n" +
      body + "\n}");
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{layout});
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(desired));
  EXPECT_EQ(count_calls(after, "layout_transform"), transforms) << relay::print_module(after);
  kit::Random random(5);
  expect_same_results(before, after, kit::random_inputs(before, random), 1e-5);
}

// A result that is stored otherwise has one transform more, behind the op; one between would change the values' order.
TEST(ConvertLayout, GoesThroughOpsOverAxes) {
  const std::string vector = "const(Tensor[(8), float32], [1, 2, 3, 4, 5, 6, 7, 8])";
  const std::string norm = fmt::format("{0}, {0}", vector);
  for (const std::string& body :
       {fmt::format("  nn.batch_norm(%0, {0}, {0}).0", norm), fmt::format("  nn.layer_norm(%0, {}, axis=1)", norm),
        fmt::format("  nn.instance_norm(%0, {})", norm), fmt::format("  nn.group_norm(%0, {}, num_groups=2)", norm),
        std::string("  nn.l2_normalize(%0, eps=0.001f, axis=[1, 3])"), std::string("  nn.lrn(%0, size=3)"),
        std::string("  strided_slice(%0, begin=[0, 1], end=[1, -1], strides=[1, 2])"),
        std::string("  strided_slice(%0, begin=[1], end=[3], axes=[3])"),
        std::string("  split(%0, indices_or_sections=[1, 3], axis=1).1"), std::string("  squeeze(%0, axis=[0])"),
        std::string("  topk(%0, k=2, axis=2, ret_type=\"indices\")"), std::string("  sum(%0, axis=[2])"),
        std::string("  cumsum(%0, axis=1)"), std::string("  reverse(%0, axis=3)"), std::string("  sort(%0, axis=1)"),
        std::string("  slice_like(%0, nn.relu(%0), axes=[2])")})
    expect_transforms(body, "NHWC", 3);
}

TEST(ConvertLayout, ResultsWithoutTheMovedAxesNeedNoTransform) {
  for (const char* body :
       {"  sum(%0, axis=[1])", "  max(%0, axis=[2, 3])", "  sum(%0)", "  sum(%0, axis=[0, 1], exclude=True)",
        "  argmax(%0, axis=[2, 3])", "  squeeze(mean(%0, axis=[2, 3], keepdims=True), axis=[2, 3])",
        "  transpose(%0, axes=[0, 2, -1, 1])", "  transpose(%0)"})
    expect_transforms(body, "NHWC", 2);
}

// Stored otherwise, the first and the greatest index along two axes would be others.
TEST(ConvertLayout, OpsThatDependOnTheOrderOfAxesStay) {
  for (const char* body : {"  argmax(%0, axis=[1, 2])", "  argmax(%0)", "  cumsum(%0)"})
    expect_transforms(body, "NHWC", 3);
  expect_transforms(
      fmt::format("  nn.instance_norm(%0, {0}, {0})", "const(Tensor[(8), float32], [1, 2, 3, 4, 5, 6, 7, 8])"), "HWNC",
      2);
}

// Along channels in parts, slices and splits between blocks count blocks; others get the layout as written.
TEST(ConvertLayout, SlicesOfChannelsInParts) {
  for (const char* body :
       {"  strided_slice(%0, begin=[0, 4], end=[1, 8])", "  strided_slice(%0, begin=[4], end=[8], axes=[1])",
        "  strided_slice(%0, begin=[0, 2], end=[1, 8])", "  split(%0, indices_or_sections=2, axis=1).1",
        "  split(%0, indices_or_sections=[4], axis=1).0", "  split(%0, indices_or_sections=[2], axis=1).0",
        "  split(%0, indices_or_sections=4, axis=1).3"})
    expect_transforms(body, "NCHW4c", 3);
}

TEST(ConvertLayout, TuplesAndLetsOfThem) {
  expect_transforms("  split(%0, indices_or_sections=2, axis=1)", "NHWC", 4);
  expect_transforms("  let %s = split(%0, indices_or_sections=2, axis=1);\n  add(%s.0, nn.relu(%s.1))", "NHWC", 3);
}

TEST(ConvertLayout, RegionsFollowWhereTheyAreNamed) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 4, 6, 6), float32]) {\n  vision.roi_align(%x, const(Tensor[(2, 5), float32], "
      "[0, 0, 0, 3, 3, 0, 1, 2, 4, 5]), pooled_size=[2, 2], spatial_scale=1, sample_ratio=2)\n}");
  DesiredLayouts desired;
  desired.set("vision.roi_align", Array<std::string>{"NHWC", "default"});
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(desired));
  EXPECT_EQ(count_calls(after, "layout_transform"), 2) << relay::print_module(after);
  expect_same_results(before, after, {ramp({1, 4, 6, 6}, 0)}, 1e-5);
}

// After the borders are folded and cancelled, no transpose is left inside.
TEST(ConvertLayout, NothingIsLeftBetween) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2, 4, 4), float32]) {\n"
      "  %0 = nn.relu(nn.conv2d(%x, const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4])));\n"
      "  nn.conv2d(nn.max_pool2d(%0, pool_size=[2, 2]), const(Tensor[(2, 2, 1, 1), float32], [5, 6, 7, 8]))\n}");
  IRModule after = run_pass("ConvertLayout", before, with_layouts(nhwc()));
  for (const char* pass : {"FoldConstant", "SimplifyExpr"}) after = run_pass(pass, after);
  EXPECT_EQ(count_calls(after, "transpose"), 2) << relay::print_module(after);
  expect_same_results(before, after, {ramp({1, 2, 4, 4}, 0)});
}

TEST(ConvertLayout, BackToNchw) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 4, 4, 2), float32], %w: Tensor[(1, 1, 2, 3), float32]) {\n"
      "  nn.conv2d(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\")\n}");
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{"NCHW", "default"});
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(desired));
  EXPECT_EQ(relay::print_module(after).find("data_layout"), std::string::npos) << "the op's own layouts";
  EXPECT_EQ(relay::print_module(after).find("kernel_layout"), std::string::npos);
  EXPECT_EQ(count_calls(after, "layout_transform"), 3) << relay::print_module(after);
  expect_same_results(before, after, {ramp({1, 4, 4, 2}, 0), ramp({1, 1, 2, 3}, 1)});
}

TEST(ConvertLayout, DesiredLayoutsAreChecked) {
  const auto message = [](const Value& desired) {
    pass::PassContext context;
    context.config.set("relay.ConvertLayout.desired_layouts", desired);
    try {
      desired_layouts(context);
    } catch (const UserError& e) {
      return e.message();
    }
    return std::string("no error");
  };
  const auto one = [](const char* op, Array<std::string> layouts) {
    DesiredLayouts desired;
    desired.set(op, layouts);
    return Value(desired);
  };
  EXPECT_EQ(message(Value("NHWC")),
            "relay.ConvertLayout.desired_layouts must map names of ops to lists of layouts, got \"NHWC\"");
  EXPECT_EQ(
      message(one("nn.relu", {"NHWC"})),
      "relay.ConvertLayout.desired_layouts: 'nn.relu' has no layout to convert; these have: nn.conv1d, nn.conv2d, "
      "nn.conv3d, nn.conv1d_transpose, nn.conv2d_transpose, nn.conv3d_transpose, nn.deformable_conv2d, "
      "nn.max_pool1d, nn.max_pool2d, "
      "nn.max_pool3d, nn.avg_pool1d, nn.avg_pool2d, nn.avg_pool3d, nn.global_max_pool2d, nn.global_avg_pool2d, "
      "nn.adaptive_max_pool1d, nn.adaptive_max_pool2d, nn.adaptive_max_pool3d, nn.adaptive_avg_pool1d, "
      "nn.adaptive_avg_pool2d, nn.adaptive_avg_pool3d, image.resize2d, vision.roi_align, and "
      "ops with the attribute FTVMConvertOpLayout");
  EXPECT_EQ(message(one("nn.conv2d", {"NCHWC"})),
            "relay.ConvertLayout.desired_layouts: 'NCHWC' is not an order of the letters NCHW of 'nn.conv2d': 'NCHWC' "
            "is not a "
            "layout: the axis C stands twice; a layout is such as NCHW, NHWC or NCHW16c");
  EXPECT_EQ(
      message(one("nn.conv2d", {"NCHW16c", "OIXW"})),
      "relay.ConvertLayout.desired_layouts: 'OIXW' is not an order of the letters OIHW of 'nn.conv2d'; its axes are "
      "OIXW");
  EXPECT_EQ(
      message(one("nn.conv2d", {"NCHW4w"})),
      "relay.ConvertLayout.desired_layouts: 'NCHW4w' is not an order of the letters NCHW of 'nn.conv2d'; its axis W "
      "cannot lie in parts");
  for (const char* op : {"nn.conv2d_transpose", "image.resize2d"})
    EXPECT_NE(message(one(op, {"NCHW4c"})).find("its axis C cannot lie in parts"), std::string::npos) << op;
  EXPECT_EQ(message(one("nn.max_pool2d", {"NHWC", "OIHW"})),
            "relay.ConvertLayout.desired_layouts: 'nn.max_pool2d' takes one layout, got 2 layouts");
  EXPECT_EQ(
      message(one("nn.conv1d", {"NCHW"})),
      "relay.ConvertLayout.desired_layouts: 'NCHW' is not an order of the letters NCW of 'nn.conv1d'; its axes are "
      "NCHW");
  EXPECT_EQ(message(one("nn.conv2d", {"NHWC"})), "no error");
}

// Where an option is given, before a pass runs.
TEST(ConvertLayout, DesiredLayoutsAreCheckedWithTheConfiguration) {
  for (const pass::Pass& pass : by_name()) {
    if (pass.info.name != "ConvertLayout") continue;
    pass::ConfigKey key = pass.info.options.at(0);
    key.name = "test.desired_layouts";
    pass::declare_config_key(key);
  }
  Map<std::string, Value> config;
  config.set("test.desired_layouts", Value(packed("NCHW3h")));
  EXPECT_EQ(
      kit::user_error_of([&] { pass::check_config(config); }),
      "relay.ConvertLayout.desired_layouts: 'NCHW3h' is not an order of the letters NCHW of 'nn.conv2d'; its axis H "
      "cannot lie in parts");
  config.set("test.desired_layouts", Value(nhwc()));
  EXPECT_EQ(kit::user_error_of([&] { pass::check_config(config); }), "");
}

// Tests the ops between convolutions of one and of three axes, in channels-last layouts and in parts.
struct RankCase {
  const char* name;
  const char* body;
  std::vector<Shape> inputs;
  std::vector<std::pair<const char*, const char*>> layouts;  // op: layout
  int converted;                                             // transposes and transforms that are left: the borders
};
void PrintTo(const RankCase& c, std::ostream* out) { *out << c.name; }

class OtherRanks : public testing::TestWithParam<RankCase> {};

TEST_P(OtherRanks, HaveTheirBordersAndTheSameResults) {
  const RankCase& c = GetParam();
  std::vector<std::string> params;
  for (size_t i = 0; i < c.inputs.size(); ++i)
    params.push_back(fmt::format("%x{}: Tensor[({}), float32]", i, fmt::join(c.inputs[i], ", ")));
  const IRModule before = read(fmt::format("def @main({}) {{\n{}\n}}", fmt::join(params, ", "), c.body));
  DesiredLayouts desired;
  for (const auto& [op, layout] : c.layouts) desired.set(op, Array<std::string>{layout});
  IRModule after = run_pass("ConvertLayout", before, with_layouts(desired));
  const std::string text = relay::print_module(after);
  for (const auto& [op, layout] : c.layouts) {
    const std::string_view name = layout;
    EXPECT_NE(text.find(fmt::format("layout=\"{}\"", name)), std::string::npos) << op << "\n" << text;
  }
  EXPECT_EQ(count_calls(after, "transpose") + count_calls(after, "layout_transform"), c.converted) << text;
  kit::Random random(5);
  expect_same_results(before, after, kit::random_inputs(before, random), 1e-5);
}

INSTANTIATE_TEST_SUITE_P(
    Convolutions, OtherRanks,
    testing::Values(
        RankCase{"Conv1dPoolsAndBias",
                 "  %0 = nn.bias_add(nn.conv1d(%x0, %x1, padding=[1]), %x2);\n"
                 "  %1 = nn.avg_pool1d(nn.max_pool1d(nn.relu(%0), pool_size=[2]), pool_size=[2], strides=[2]);\n"
                 "  nn.adaptive_max_pool1d(nn.adaptive_avg_pool1d(%1, output_size=[3]), output_size=[2])",
                 {{1, 2, 9}, {3, 2, 3}, {3}},
                 {{"nn.conv1d", "NWC"}},
                 4},  // the bias, too
        RankCase{"DeformableConv2d",
                 "  nn.relu(nn.deformable_conv2d(%x0, %x1, %x2))",
                 {{1, 2, 5, 5}, {1, 18, 3, 3}, {4, 2, 3, 3}},
                 {{"nn.deformable_conv2d", "NHWC"}},
                 4},
        RankCase{"PoolsSayTheirResults",
                 "  nn.global_avg_pool2d(nn.max_pool2d(nn.conv2d(%x0, %x1), pool_size=[2, 2]))",
                 {{1, 2, 6, 6}, {4, 2, 3, 3}},
                 {{"nn.conv2d", "NHWC"}, {"nn.max_pool2d", "NCHW"}, {"nn.global_avg_pool2d", "NHWC"}},
                 5},
        RankCase{"Conv1dInParts",
                 "  nn.max_pool1d(nn.conv1d(%x0, %x1, padding=[1]), pool_size=[2])",
                 {{1, 4, 9}, {8, 4, 3}},
                 {{"nn.conv1d", "NCW4c"}},
                 3},
        RankCase{"Conv1dTranspose",
                 "  nn.relu(nn.conv1d_transpose(%x0, %x1, strides=[2]))",
                 {{1, 2, 5}, {2, 3, 3}},
                 {{"nn.conv1d_transpose", "NWC"}},
                 3},
        RankCase{"Conv3dPoolsAndSums",
                 "  %0 = nn.relu(nn.conv3d(%x0, %x1, padding=[1]));\n"
                 "  %1 = nn.avg_pool3d(nn.max_pool3d(%0, pool_size=[2]), pool_size=[1, 2, 1]);\n"
                 "  %2 = nn.adaptive_max_pool3d(%1, output_size=[2, 2, 2]);\n"
                 "  mean(nn.adaptive_avg_pool3d(%2, output_size=[1, 2, 2]), axis=[2], keepdims=True)",
                 {{1, 2, 4, 5, 4}, {3, 2, 3, 3, 3}},
                 {{"nn.conv3d", "NDHWC"}, {"nn.max_pool3d", "NDHWC"}},
                 3},
        RankCase{"Conv3dTranspose",
                 "  nn.conv3d_transpose(%x0, %x1, strides=[1, 2, 1])",
                 {{1, 2, 3, 2, 3}, {2, 3, 2, 2, 2}},
                 {{"nn.conv3d_transpose", "NDHWC"}},
                 3},
        RankCase{"APoolAlone", "  nn.avg_pool1d(%x0, pool_size=[2])", {{1, 2, 6}}, {{"nn.avg_pool1d", "NWC"}}, 2}),
    [](const auto& info) { return std::string(info.param.name); });

// "default" is the usual kernel of such data in every rank.
TEST(ConvertLayout, DefaultKernelsOfOtherRanks) {
  const auto text_of = [](const char* op, const char* data, const char* weight, const char* layout) {
    const IRModule before = read(fmt::format(
        "def @main(%x: Tensor[{}, float32], %w: Tensor[{}, float32]) {{\n  {}(%x, %w)\n}}", data, weight, op));
    DesiredLayouts desired;
    desired.set(op, Array<std::string>{layout, "default"});
    return relay::print_module(run_pass("ConvertLayout", before, with_layouts(desired)));
  };
  const auto has = [](const char* text) { return testing::HasSubstr(text); };
  EXPECT_THAT(text_of("nn.conv1d", "(1, 2, 5)", "(3, 2, 3)", "NWC"), has("kernel_layout=\"WIO\""));
  EXPECT_THAT(text_of("nn.conv1d_transpose", "(1, 2, 5)", "(2, 3, 3)", "NWC"), has("kernel_layout=\"WOI\""));
  EXPECT_THAT(text_of("nn.conv3d", "(1, 2, 5, 5, 5)", "(3, 2, 3, 3, 3)", "NDHWC"), has("kernel_layout=\"DHWIO\""));
  EXPECT_THAT(text_of("nn.conv3d", "(1, 2, 5, 5, 5)", "(4, 2, 3, 3, 3)", "NCDHW2c"),
              has("kernel_layout=\"OIDHW2i2o\""));
}

// ---- functions that users set on ops

// Sets a conversion function (attributes, arguments, types, layouts) for as long as a test runs.
class Conversion {
 public:
  Conversion(const char* op, const Value& function) {
    ops::register_all_ops();
    op_ = get_op(op);
    op_->set(OpKey<Value>{kConvertLayoutAttr}, function);
  }
  ~Conversion() { op_->erase(kConvertLayoutAttr); }
  Conversion(const Conversion&) = delete;

 private:
  Op op_;
};

using Layouts = Array<std::string>;

DesiredLayouts of_one(const char* op, const Layouts& layouts) {
  DesiredLayouts desired;
  desired.set(op, layouts);
  return desired;
}

// nn.max_pool1d over windows of two, in that layout.
Expr pool_in(const std::string& layout, const Expr& data) {
  ops::MaxPool1DAttrs attrs;
  attrs.pool_size = {2};
  attrs.layout = layout;
  return ops::max_pool(data, attrs);
}

Value pool_to_nwc() {
  return Value(make_packed([](const Value&, const Array<Expr>& args, const Array<Type>& types, const Layouts& layouts) {
    EXPECT_EQ(types.size(), 2u);
    EXPECT_EQ(to_string(types[0]), "Tensor[(1, 2, 4), float32]");
    EXPECT_EQ(to_string(types[1]), "Tensor[(1, 2, 3), float32]");
    return ops::transpose(pool_in(layouts[0], ops::transpose(args[0], {0, 2, 1})), {0, 2, 1});
  }));
}

constexpr const char* kPooledLine =
    "def @main(%x: Tensor[(1, 2, 4), float32]) { nn.relu(nn.max_pool1d(%x, pool_size=[2])) }";

TEST(ConvertLayout, AFunctionOfTheOpConverts) {
  const Conversion conversion("nn.max_pool1d", pool_to_nwc());
  const IRModule before = read(kPooledLine);
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(of_one("nn.max_pool1d", {"NWC"})));
  EXPECT_EQ(relay::print_module(after),
            "#[version = \"0.0.5\"]\n"
            "def @main(%x: Tensor[(1, 2, 4), float32]) {\n"
            "  %0 = transpose(%x, axes=[0, 2, 1]);\n"
            "  %1 = nn.max_pool1d(%0, pool_size=[2], layout=\"NWC\");\n"
            "  %2 = transpose(%1, axes=[0, 2, 1]);\n"
            "  nn.relu(%2)\n"
            "}\n");
  expect_same_results(before, after, {ramp({1, 2, 4}, -1)}, 0);
  EXPECT_EQ(run_pass("ConvertLayout", before, with_layouts(nhwc())), before) << "only where it is asked for";
}

// Built-in ops are converted around it, and pairs of borders cancel.
TEST(ConvertLayout, FunctionsAndOursTogether) {
  const Conversion conversion(
      "nn.lrn", Value(make_packed([](const Value&, const Array<Expr>& args, const Array<Type>&, const Layouts&) {
        ops::LRNAttrs attrs;
        attrs.axis = 3;
        return ops::transpose(ops::lrn(ops::transpose(args[0], {0, 2, 3, 1}), attrs), {0, 3, 1, 2});
      })));
  DesiredLayouts desired = nhwc();
  desired.set("nn.lrn", Layouts{"NHWC"});
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2, 4, 4), float32], %w: Tensor[(3, 2, 1, 1), float32],"
      " %v: Tensor[(2, 3, 1, 1), float32]) { nn.conv2d(nn.lrn(nn.conv2d(%x, %w)), %v) }");
  const IRModule converted = run_pass("ConvertLayout", before, with_layouts(desired));
  const IRModule after = run_pass("SimplifyExpr", converted);
  EXPECT_EQ(count_calls(after, "transpose") + count_calls(after, "reshape"), 4) << "data, its result, two kernels\n"
                                                                                << relay::print_module(after);
  expect_same_results(before, after, {ramp({1, 2, 4, 4}, -1), ramp({3, 2, 1, 1}, 0.5f), ramp({2, 3, 1, 1}, -0.5f)});
}

// Ours too are converted by the function that they have, or not at all.
TEST(ConvertLayout, AFunctionStandsForOurs) {
  const Conversion conversion(
      "nn.conv2d", Value(make_packed([](const Value&, const Value&, const Value&, const Value&) { return Value(); })));
  const IRModule before = relay::infer_type(program_before(read_golden("convert_layout")));
  EXPECT_EQ(run_pass("ConvertLayout", before, with_layouts(of_one("nn.conv2d", {"NHWC"}))), before);
}

TEST(ConvertLayout, ResultsOfRegisteredFunctionsAreChecked) {
  const auto error_of = [](const Value& function, const Layouts& layouts, const char* text = kPooledLine) {
    const Conversion conversion("nn.max_pool1d", function);
    return kit::user_error_of(
        [&] { run_pass("ConvertLayout", read(text), with_layouts(of_one("nn.max_pool1d", layouts))); });
  };
  const auto giving = [](Expr (*give)(const Expr& data)) {
    return Value(make_packed([give](const Value&, const Array<Expr>& args, const Value&, const Value&) -> Value {
      return Value(give(args[0]));
    }));
  };
  const Value as_it_comes = giving([](const Expr& x) { return pool_in("NWC", x); });
  const std::string wrong_type =
      "its layout conversion (FTVMConvertOpLayout) gives Tensor[(1, 1, 4), float32] for a call that gives "
      "Tensor[(1, 2, 3), float32]";
  EXPECT_EQ(error_of(as_it_comes, {"NWC"}), wrong_type + "\n  at: nn.max_pool1d\n  in: test.relay:2:53");
  const char* of_any_type = "def @main(%x: Tensor[(1, 2, 4), float32]) { sum(nn.max_pool1d(%x, pool_size=[2])) }";
  EXPECT_THAT(error_of(as_it_comes, {"NWC"}, of_any_type), testing::HasSubstr(wrong_type));
  EXPECT_THAT(error_of(giving([](const Expr& x) { return pool_in("NWC", ops::transpose(x, {0, 1})); }), {"NWC"}),
              testing::StartsWith("what the layout conversion of nn.max_pool1d gives does not fit the program: "));
  const Value number(make_packed([](const Value&, const Value&, const Value&, const Value&) { return 3; }));
  EXPECT_THAT(error_of(number, {"NWC"}), testing::HasSubstr("its layout conversion gave no expression but 3"));
  EXPECT_EQ(error_of(number, {}),
            "relay.ConvertLayout.desired_layouts: 'nn.max_pool1d' takes a list of one layout or more, got none");
  EXPECT_EQ(error_of(Value(3), {"NWC"}),
            "the attribute 'FTVMConvertOpLayout' of op 'nn.max_pool1d' is not a function that converts layouts");
}

// A reference is read before later expressions, however often the function uses its argument.
TEST(ConvertLayout, AFunctionsArgumentsAreEvaluatedOnce) {
  const Conversion conversion("nn.max_pool1d", pool_to_nwc());
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2, 4), float32]) {\n"
      "  let %r = ref(%x);\n  (nn.max_pool1d(ref_read(%r), pool_size=[2]), ref_write(%r, exp(%x)))\n}");
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(of_one("nn.max_pool1d", {"NWC"})));
  EXPECT_EQ(count_calls(after, "transpose"), 2);
  expect_same_results(before, after, {ramp({1, 2, 4}, -1)}, 0);
}

}  // namespace
}  // namespace headrace::passes
