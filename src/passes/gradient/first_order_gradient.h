// FirstOrderGradient: each function gives its result and, beside it, the gradients of the result by its parameters.
//
//   def @main(%x: Tensor[(2), float32]) { exp(%x) }
//     ->  def @main(%x: Tensor[(2), float32]) { %0 = exp(%x); (%0, (multiply(ones(...), %0),)) }
//
// Reverse mode: for a result of several elements (a tensor, or a tuple of tensors) it is the gradient of their sum. A
// parameter that is no tensor of floats has no gradient: zeros of its type stand in its place. Where a function has a
// kink (relu, abs, maximum) it is one of the one-sided ones.
//
// For straight-line functions over tensors and tuples, without effects, calls of other functions (Inline), branches or
// recursion, of static shapes: UserError at the expression otherwise, and at an op that has no rule: of the project's
// (gradient_rules.cc), or of its user (kGradientAttr), which must fit the types of the arguments. Training-form ops go
// first (SimplifyInference). Needs types. The result itself is what it was, to the last bit. Values are kept: nothing
// is computed again at an annotation.checkpoint.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule first_order_gradient(const IRModule& module);

}  // namespace headrace::passes
