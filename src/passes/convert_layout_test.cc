#include "passes/nn/convert_layout.h"

#include "kit/property.h"
#include "kit/relay_programs.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

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

// A chain that stays in the new layout, a let, a skip, what is joined, and what needs the layout as written.
constexpr const char* kNetwork =
    "def @main(%x: Tensor[(1, 2, 4, 4), float32], %y: Tensor[(1, 3, 4, 4), float32],"
    " %w: Tensor[(3, 2, 3, 3), float32]) {\n"
    "  %0 = nn.bias_add(nn.conv2d(%x, %w, padding=[1, 1]), const(Tensor[(3), float32], [1, 2, 3]));\n"
    "  let %a = nn.relu(multiply(%0, const(Tensor[(3, 1, 1), float32], [1, -1, 0.5])));\n"
    "  %1 = nn.max_pool2d(add(%a, %y), pool_size=[2, 2], strides=[2, 2]);\n"
    "  %2 = concatenate((%1, clip(%1, a_min=0f, a_max=1f)), axis=1);\n"
    "  %3 = nn.pad(nn.prelu(%2, const(Tensor[(6), float32], [1, 2, 3, 4, 5, 6])), 0f,"
    " pad_width=[[0, 0], [0, 0], [1, 0], [0, 2]]);\n"
    "  %4 = nn.softmax(%3, axis=1);\n"
    "  (nn.batch_flatten(nn.global_avg_pool2d(%4)), mean(%3, axis=[2, 3], keepdims=True), sum(%2, axis=[1]), %a)\n"
    "}";

TEST(ConvertLayout, TextAndResults) {
  PassCase row{"ConvertLayout", "convert_layout", kNetwork, {{1, 2, 4, 4}, {1, 3, 4, 4}, {3, 2, 3, 3}}, 1e-5};
  check_pass(row, with_layouts(nhwc()));
}

// After the borders are folded and cancelled, no transpose is left inside.
TEST(ConvertLayout, NothingIsLeftBetween) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2, 4, 4), float32]) {\n"
      "  %0 = nn.relu(nn.conv2d(%x, const(Tensor[(2, 2, 1, 1), float32], [1, 2, 3, 4])));\n"
      "  nn.conv2d(nn.max_pool2d(%0, pool_size=[2, 2]), const(Tensor[(2, 2, 1, 1), float32], [5, 6, 7, 8]))\n}");
  IRModule after = run_pass("ConvertLayout", before, with_layouts(nhwc()));
  for (const char* pass : {"FoldConstant", "SimplifyExpr"}) after = run_pass(pass, after);
  int transposes = 0;
  relay::post_order(after->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    transposes += call != nullptr && call->as_op()->name == "transpose" ? 1 : 0;
  });
  EXPECT_EQ(transposes, 2) << relay::print_module(after);
  expect_same_results(before, after, {ramp({1, 2, 4, 4}, 0)});
}

TEST(ConvertLayout, BackToNchw) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 4, 4, 2), float32], %w: Tensor[(1, 1, 2, 3), float32]) {\n"
      "  nn.conv2d(%x, %w, data_layout=\"NHWC\", kernel_layout=\"HWIO\")\n}");
  DesiredLayouts desired;
  desired.set("nn.conv2d", Array<std::string>{"NCHW", "default"});
  const IRModule after = run_pass("ConvertLayout", before, with_layouts(desired));
  EXPECT_EQ(relay::print_module(after).find("NHWC"), std::string::npos);
  EXPECT_EQ(relay::print_module(after).find("HWIO"), std::string::npos);
  expect_same_results(before, after, {ramp({1, 4, 4, 2}, 0), ramp({1, 1, 2, 3}, 1)});
}

TEST(ConvertLayout, WhatIsAskedForIsChecked) {
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
  EXPECT_EQ(message(one("nn.relu", {"NHWC"})),
            "relay.ConvertLayout.desired_layouts: 'nn.relu' has no layout to convert; these have: nn.conv2d, "
            "nn.conv2d_transpose, nn.max_pool2d, nn.avg_pool2d, nn.global_max_pool2d, nn.global_avg_pool2d, "
            "image.resize2d");
  EXPECT_EQ(message(one("nn.conv2d", {"NCHWC"})),
            "relay.ConvertLayout.desired_layouts: 'NCHWC' is no order of the letters NCHW of 'nn.conv2d'");
  EXPECT_EQ(message(one("nn.max_pool2d", {"NHWC", "OIHW"})),
            "relay.ConvertLayout.desired_layouts: 'nn.max_pool2d' takes one layout, got 2 layouts");
  EXPECT_EQ(message(one("nn.conv2d", {"NHWC"})), "no error");
}

TEST(ConvertLayout, RandomProgramsKeepTheirResults) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const IRModule before = kit::random_program(seed, {.steps = 25});
    const IRModule after = run_pass("ConvertLayout", before, with_layouts(nhwc()));
    kit::Random random(seed);
    expect_same_results(before, after, kit::random_inputs(before, random), 1e-4);
    if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << "\n" << relay::print_module(before);
  }
}

}  // namespace
}  // namespace headrace::passes
