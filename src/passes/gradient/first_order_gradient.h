// FirstOrderGradient: each function gives its result and, beside it, the gradients of the result by its parameters.
//
//   def @main(%x: Tensor[(2), float32]) { exp(%x) }
//     ->  def @main(%x: Tensor[(2), float32]) { %0 = exp(%x); (%0, (multiply(ones(...), %0),)) }
//
// Reverse mode: for a result of several elements (a tensor, or a tuple of tensors) it is the gradient of their sum. A
// parameter that is no tensor of floats has no gradient: zeros of its type stand in its place; a tuple of tensors has a
// tuple. Where a function has a kink (relu, abs, maximum) it is one of the one-sided ones.
//
// Functions that are called become parts of their callers (straight_line.h); a function over functions or data types
// stays as it is. UserError at the expression that is no op call or tuple then: at a function that calls itself, a
// branch, a reference; where functions call each other so often that there are too many calls to inline; where a rule
// needs a static shape; and at an op that parameters flow through and that has no rule, of the project's
// (gradient_rules.cc) or of its user (kGradientAttr), which must fit the types of the arguments.
// Training-form ops go first (SimplifyInference). Needs types. The result itself is what it was, to the last bit.
// Values are kept: nothing is computed again at an annotation.checkpoint. New nodes have the span of the op they come
// from.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule first_order_gradient(const IRModule& module);

}  // namespace headrace::passes
