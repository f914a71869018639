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
// references, are left as they are (passes/rewrite/effects.h). A law replaces a call by one of its operands only where
// both surely have one shape, which a dimension `?` does not show. Laws that hold for some dtypes only say so in their
// tables: integers wrap, and NaN differs from itself.
//
// Below level 3 floating-point results keep every bit but the sign of a zero. From level 3 on, laws apply that round
// differently (LawNumerics in law.h): x + c + d becomes x + (c + d) for constants of the same sign; x * c * d becomes
// x * (c * d) where x * c cannot have overflowed or lost digits to underflow; x to the power of 2 becomes x * x, and to
// the power of -1 it becomes 1 / x; 1 / sqrt(x) is rounded once. Constants of opposite signs are never added: (x + c) -
// c rounds x to the spacing of c, which programs do on purpose. docs/numerics.md states each bound.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// `as_named`: with Relay's own laws in place of those of builds (LawScope in law.h).
IRModule simplify_expr(const IRModule& module, int32_t opt_level, bool as_named);

}  // namespace headrace::passes
