// Tests where RemoveStandaloneReshapes leaves a reshape; its golden text is among those of passes_test.cc.
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

// (1, 2, 4) becomes (2, 4), then (2, 2, 2): the three are written with `?` where they differ.
TEST(RemoveStandaloneReshapes, UnknownDimensionsAreNoProof) {
  const IRModule before = read(
      "def @main(%x: Tensor[(?, 2, ?), float32]) {\n"
      "  %0 = fn (%p: Tensor[(?, 2, ?), float32], Primitive=1) { reshape(%p, newshape=[-3, 0]) };\n"
      "  %1 = fn (%p: Tensor[(?, ?), float32], Primitive=1) { reshape(%p, newshape=[0, -4, 2, -1]) };\n"
      "  %1(%0(%x))\n"
      "}");
  expect_same_results(before, run_pass("RemoveStandaloneReshapes", before), {ramp({1, 2, 4}, 0)}, 0);
}

}  // namespace
}  // namespace headrace::passes
