// Turns bodies into straight-line code without calls of functions, which FirstOrderGradient walks backwards.
//
//   let %f = fn (%a) { multiply(%a, %x) }; @g(%f(%y))   ->   @g's body, of multiply(%y, %x)
//
// Drops lets (ToGraphNormalForm) and inlines calls of global functions (InlineCalls) and of function literals, until no
// more calls appear. Recursive functions, expressions with effects, and functions that passes leave alone
// (relay/function_attrs.h) stay. UserError where this would add more nodes than InlineCalls may (kMostInlinedNodes).
//
// Needs types and returns a typed module. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule straight_line(const IRModule& module);

}  // namespace headrace::passes
