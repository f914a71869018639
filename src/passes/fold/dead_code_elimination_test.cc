// Tests DeadCodeElimination: lets that are used once, also in functions inside, and effects.
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

int64_t count_lets(const IRModule& module) {
  int64_t count = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& e) { count += e.is<relay::LetNode>(); });
  return count;
}

// Used once: a chain; twice; in a function inside; read at another time; a value with an effect.
TEST(DeadCodeElimination, InlinesWhatIsUsedOnce) {
  const IRModule before = read(
      "def @main(%x: float32) -> (float32, float32, float32, float32) {\n"
      "  let %a = exp(%x);\n  let %b = negative(%a);\n  let %twice = abs(%b);\n  let %sum = add(%twice, %twice);\n"
      "  let %inside = sqrt(%x);\n  let %f = fn (%y: float32) -> float32 { add(%y, %inside) };\n"
      "  let %r = ref(%sum);\n  let %old = ref_read(%r);\n  let %_ = ref_write(%r, 2f);\n"
      "  (%f(1f), %f(2f), %old, ref_read(%r))\n}");
  EXPECT_EQ(count_lets(run_pass("DeadCodeElimination", before)), 9);
  const IRModule after =
      run_pass("DeadCodeElimination", before, with_option("relay.DeadCodeElimination.inline_once", Value(true)));
  EXPECT_EQ(count_lets(after), 6) << relay::print_module(after);  // %a, %b and %sum have become their values
  expect_same_results(before, after, {ramp({}, 2)}, 0);
}

// A function's own lets are as those around it; a value from outside stays there.
TEST(DeadCodeElimination, InlinesWhatIsUsedOnceInInnerFunctions) {
  const IRModule before = read(
      "def @main(%x: float32) -> (float32, float32) {\n"
      "  let %outside = exp(%x);\n"
      "  let %f = fn (%y: float32) -> float32 {\n"
      "    let %once = abs(%y);\n    let %twice = add(%once, %outside);\n    let %last = multiply(%twice, %twice);\n"
      "    if (less(%last, 2f)) { let %in_branch = sqrt(%last); %in_branch } else { let %same = %last; %same }\n  };\n"
      "  let %g = fn (%z: float32) -> float32 { let %only = negative(%z); %only };\n"
      "  (%f(1f), add(%f(2f), %g(%x)))\n}");
  EXPECT_EQ(count_lets(before), 9);
  const IRModule after =
      run_pass("DeadCodeElimination", before, with_option("relay.DeadCodeElimination.inline_once", Value(true)));
  // %outside, %twice, %last and %f stay.
  EXPECT_EQ(count_lets(after), 4) << relay::print_module(after);
  expect_same_results(before, after, {ramp({}, 2)}, 0);
}

TEST(DeadCodeElimination, MayIgnoreEffects) {
  const IRModule before = read("def @main(%x: float32) { let %r = ref(%x); let %_ = ref_write(%r, 2f); %x }");
  EXPECT_EQ(count_lets(run_pass("DeadCodeElimination", before)), 2);
  const auto context = with_option("relay.DeadCodeElimination.ignore_impurity", Value(true));
  EXPECT_EQ(count_lets(run_pass("DeadCodeElimination", before, context)), 0);
}

}  // namespace
}  // namespace headrace::passes
