// DefuseOps: inlines the functions that FuseOps made.
//
//   (fn (%p0, Primitive=1) { nn.relu(add(%p0, 1f)) })(%x)   ->   nn.relu(add(%x, 1f))
//
// Inlines only calls whose callee is a primitive function literal. Functions that are bound to a variable, global, or
// marked for another compiler stay. Exact inverse of FuseOps. Needs no types. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule defuse_ops(const IRModule& module);

}  // namespace headrace::passes
