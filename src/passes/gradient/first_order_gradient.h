// FirstOrderGradient: each function gives its result and, beside it, the gradients of the result by its parameters.
//
//   def @main(%x: Tensor[(2), float32]) { exp(%x) }
//     ->  def @main(%x: Tensor[(2), float32]) { %0 = exp(%x); (%0, (multiply(ones(...), %0),)) }
//
// Uses reverse mode. For a result of several elements (a tensor, or a tuple of tensors) it computes the gradient of
// their sum. A parameter that is not a float tensor has no gradient and gets zeros of its type; a tuple of tensors gets
// a tuple. At a kink (relu, abs, maximum) the result is a one-sided derivative.
//
// Called functions are inlined first (straight_line.h); a function over functions or data types stays as it is.
// UserError at an expression that is neither an op call nor a tuple then: a function that calls itself, a branch, a
// reference; where functions call each other so often that there are too many calls to inline; where a rule needs a
// static shape; and at an op without a rule that parameters reach. Rules are the project's (gradient_rules.cc) or a
// user's (kGradientAttr); a gradient must fit the types of the arguments. Run SimplifyInference first, for ops in
// training form. Needs types. Preserves the original result to the last bit. Intermediate values are kept:
// annotation.checkpoint does not recompute anything. New nodes have the span of the op they come from.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule first_order_gradient(const IRModule& module);

}  // namespace headrace::passes
