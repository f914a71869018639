// EliminateCommonSubexpr: equal calls of pure ops, and equal constants, become one.
//
//   (exp(x), exp(x))   ->   %0 = exp(x); (%0, %0)
//
// Equal means: the same op, equal attributes, the same operands; for constants, the same shape, dtype and bits. Ops
// with effects are left. Runs after passes that duplicate, before FuseOps. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule eliminate_common_subexpr(const IRModule& module);

}  // namespace headrace::passes
