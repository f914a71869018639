// SimplifyExpr: algebra on the graph. Each law is a function in a table of passes/simplify/, with its statement above
// it.
//
//   add(x, 0)  ->  x                              transpose(transpose(x))  ->  transpose(x), or x
//   add(add(x, 1f), 2f)  ->  add(x, 3f)           reshape(squeeze(x))      ->  reshape(x)
//   cast(x, its own dtype)  ->  x                 concatenate((x,))        ->  x
//   zeros_like(x)  ->  zeros(x's shape)           reshape_like(x, y)       ->  reshape(x, y's shape)
//
// Needs types, and keeps every expression's type. Runs after FoldConstant, which makes the constants it looks at, and
// after FoldScaleAxis, which leaves consecutive additions behind. Expressions with effects, and those that read
// references, are left as they are; shared ones, and those in braces, are bound before (passes/rewrite/effects.h). A
// dimension `?` proves nothing: an operand stands for a call only where the shapes are surely the same. Laws that hold
// for some dtypes only (integers wrap, NaN is no number) say so in their tables. Exact, but for the sign of a zero (x +
// 0, 0 - x, -(x - y), a maximum with 0, abs of what is not negative, sums and means of one element), and for the laws
// whose statement says "up to rounding": consecutive constants are added (multiplied) with each other first, which
// rounds differently (they are not where that would overflow or lose precision to underflow), small powers are
// products, and 1 / sqrt(x) is rounded once.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule simplify_expr(const IRModule& module);

}  // namespace headrace::passes
