// EliminateCommonSubexpr: equal calls of pure ops, and equal constants, become one.
//
//   (exp(x), exp(x))   ->   %0 = exp(x); (%0, %0)
//
// Equal means: the same op, equal attributes, the same operands; for constants, the same shape, dtype and bits. Ops
// with effects are left, as are calls of which one lies in one branch, clause or function and the other in another: as
// one they would be evaluated before both, even if neither is entered. Where an equal call lies around the two, all are
// one. A second run finds nothing more. Runs after passes that duplicate, before FuseOps. Preserves results to the last
// bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule eliminate_common_subexpr(const IRModule& module);

}  // namespace headrace::passes
