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
// for some dtypes only (integers wrap, NaN is no number) say so in their tables.
//
// Below level 3 floating-point results keep every bit but the sign of a zero. From level 3 on, laws apply that round
// differently (LawNumerics in law.h): constants of the same sign that are added one after the other are added first,
// factors are multiplied first where no intermediate product that disappears could have overflowed or lost digits to
// underflow, small powers become products, and 1 / sqrt(x) is rounded once. Constants of opposite signs are never
// added: (x + c) - c rounds x to the spacing of c, which programs do on purpose. docs/numerics.md states each bound.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule simplify_expr(const IRModule& module, int32_t opt_level);

}  // namespace headrace::passes
