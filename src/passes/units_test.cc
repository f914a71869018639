// Tests functions inside of bodies that passes leave as they are (relay::is_entered): nothing in them is rewritten, and
// their captured values keep their form.
#include "object/structural_equal.h"
#include "passes/tests/pass_testing.h"
#include "relay/function_attrs.h"

namespace headrace::passes {
namespace {

// Makes a program whose marked function has work for every pass: equal calls, a dead let, constants to fold, laws to
// apply, a padding, a division, a batch norm, a wide product. It captures a convolution, or the parameter beside it.
std::string unit_program(const std::string& mark) {
  return fmt::format(R"(
def @main(%x: Tensor[(1, 4, 3, 3), float32], %z: Tensor[(1, 4, 3, 3), float32], %w: Tensor[(4, 4, 1, 1), float32]) {{
  let %y = nn.conv2d(exp(%x), %w, channels=4, kernel_size=[1, 1]);
  let %f = fn (%a: Tensor[(1, 4, 3, 3), float32], {}) -> Tensor[(1, 4, 3, 3), float32] {{
    let %dead = exp(%a);
    let %once = divide(add(%a, multiply(%a, 1f)), 4f);
    %0 = nn.batch_norm(%once, ones(shape=[4], dtype="float32"), zeros(shape=[4], dtype="float32"),
                       zeros(shape=[4], dtype="float32"), ones(shape=[4], dtype="float32"));
    %1 = nn.conv2d(nn.pad(%0.0, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [1, 1]]),
                   ones(shape=[4, 4, 3, 3], dtype="float32"), channels=4, kernel_size=[3, 3]);
    %2 = nn.bias_add(%1, ones(shape=[4], dtype="float32"));
    %3 = add(multiply(exp(%y), exp(%a)), add(sum(concatenate((%a, %a, %a))), exp(%a)));
    tanh(add(%2, %3))
  }};
  add(nn.relu(%f(%z)), %y)
}})",
                     mark);
}

const relay::FunctionNode* unit_of(const IRModule& module) {
  const relay::FunctionNode* unit = nullptr;
  for (const auto& [var, function] : module->functions()) {
    relay::post_order(function, [&](const Expr& e) {
      const auto* inner = e.as<relay::FunctionNode>();
      if (inner != nullptr && !relay::is_entered(e) && !relay::is_primitive(*inner)) unit = inner;
    });
  }
  return unit;
}

class UnitTest : public testing::TestWithParam<const char*> {};

TEST_P(UnitTest, EveryPassKeepsThem) {
  const IRModule before = read(unit_program(GetParam()));
  const relay::FunctionNode* const unit = unit_of(before);
  ASSERT_NE(unit, nullptr);
  const std::vector<NDArray> args = {ramp({1, 4, 3, 3}, -2), ramp({1, 4, 3, 3}, -1), ramp({4, 4, 1, 1}, -2)};
  pass::PassContext context = typed_context();
  Map<std::string, Array<std::string>> layouts;
  layouts.set("nn.conv2d", {"NHWC", "default"});
  context.config.set("relay.ConvertLayout.desired_layouts", Value(layouts));
  for (const auto& list : {by_name(), canonical(), native({})}) {
    for (const pass::Pass& pass : list) {
      SCOPED_TRACE(pass.info.name);
      // One gives another result, the other refuses units that capture variables.
      if (pass.info.name == "FirstOrderGradient" || pass.info.name == "Defunctionalization") continue;
      const bool is_composite = std::string_view(GetParam()).starts_with("Composite");
      if (is_composite && pass.info.name == "InlineCalls") continue;  // it takes them apart
      const IRModule after = run_pass(pass.info.name, before, context);
      const relay::FunctionNode* const now = unit_of(after);
      ASSERT_NE(now, nullptr) << relay::print_module(after);
      EXPECT_TRUE(structural_equal(Value(ref(unit)), Value(ref(now)), {.map_free_vars = true}))
          << relay::print_module(after);
      if (pass.info.name != "ToMixedPrecision") expect_same_results(before, after, args, 1e-4);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Units, UnitTest,
                         testing::Values("Compiler=\"npu\"", "SkipOptimization=1", "Composite=\"npu.block\""),
                         [](const auto& info) { return std::string("Mark") + std::to_string(info.index); });

}  // namespace
}  // namespace headrace::passes
