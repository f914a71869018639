// Bodies without calls of functions: what FirstOrderGradient walks backwards.
//
//   let %f = fn (%a) { multiply(%a, %x) }; @g(%f(%y))   ->   @g's body, of multiply(%y, %x)
//
// Lets are dropped (ToGraphNormalForm), a call of a global function (InlineCalls) or of a function that stands in its
// place becomes the function's body, and so on with what that brings. What calls itself stays, as does what has
// effects, and what passes leave alone (relay/function_attrs.h). UserError where this would add more than
// kMostInlinedNodes nodes.
//
// Needs types, and gives them. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule straight_line(const IRModule& module);

}  // namespace headrace::passes
