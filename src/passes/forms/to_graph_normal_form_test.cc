// Tests ToGraphNormalForm where types that only a let writes matter; its golden text is among those of passes_test.cc.
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

// The item type of a list may be written at its let alone: such lets stay, those of tensors go.
TEST(ToGraphNormalForm, KeepsWhatWrittenTypesDecide) {
  const IRModule before = read(
      "type List[A] { Cons(A, List[A]), Nil }\n"
      "def @main(%x: float32) -> float32 {\n"
      "  let %empty: List[float32] = Nil;\n"
      "  let %pair: (float32, ref(List[float32])) = (%x, ref(Nil));\n"
      "  let %plain: float32 = exp(%x);\n"
      "  match (%empty) { Cons(%h, %t) => %plain, Nil => add(%plain, %pair.0) }\n}");
  const IRModule after = run_pass("ToGraphNormalForm", before);
  int lets = 0;
  relay::post_order(after->lookup("main"), [&](const Expr& e) { lets += e.is<relay::LetNode>() ? 1 : 0; });
  EXPECT_EQ(lets, 2) << relay::print_module(after);
  expect_same_results(before, after, {ramp({}, 0.5f)}, 0);
}

}  // namespace
}  // namespace headrace::passes
