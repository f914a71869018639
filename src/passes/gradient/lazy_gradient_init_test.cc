// Tests LazyGradientInit: gradients keep their types and values, and what has an effect stays.
#include "passes/gradient/lazy_gradient_init.h"

#include "passes/tests/golden_pass.h"

namespace headrace::passes {
namespace {

TEST(LazyGradientInit, GradientsKeepTheResults) {
  for (const char* body :
       {"multiply(subtract(%x, %y), %y)", "multiply(multiply(%x, %y), ones(shape=[2, 2], dtype=\"float32\"))",
        "add(nn.relu(%x), exp(%y))", "%x"}) {
    const IRModule program = read(fmt::format(
        "def @main(%x: Tensor[(2, 2), float32], %y: Tensor[(2, 2), float32]) -> Tensor[(2, 2), float32] {{\n  {}\n}}",
        body));
    const IRModule before = run_pass("FirstOrderGradient", program), after = run_pass("LazyGradientInit", before);
    EXPECT_EQ(to_string(main_of(after).body->checked_type()), to_string(main_of(before).body->checked_type())) << body;
    expect_same_results(before, after, {ramp({2, 2}, 0.5f), ramp({2, 2}, 0.25f)}, 0);
  }
}

// By the product rule, the gradients of x * y are y and x.
TEST(LazyGradientInit, OnesOfGradientsAreNoFactors) {
  const IRModule gradients =
      run_pass("FirstOrderGradient", read("def @main(%x: Tensor[(2), float32], %y: Tensor[(2), float32]) -> "
                                          "Tensor[(2), float32] { multiply(%x, %y) }"));
  const IRModule after = run_pass("DeadCodeElimination", run_pass("LazyGradientInit", gradients));
  const std::string text = relay::print_module(after);
  EXPECT_NE(text.find("(%y, %x)"), std::string::npos) << text;
}

TEST(LazyGradientInit, OfASizeThatIsNotKnownNothingChanges) {
  const IRModule program = read(
      "def @main(%x: Tensor[(?), float32], %y: Tensor[(3), float32]) { (add(%x, zeros_like(%y)), multiply(%x, "
      "ones_like(%x))) }");
  const std::string text = relay::print_module(run_pass("LazyGradientInit", program));
  EXPECT_NE(text.find("ones_like(%x)"), std::string::npos) << text;
  EXPECT_NE(text.find("add(%x, "), std::string::npos) << text;
}

}  // namespace
}  // namespace headrace::passes
