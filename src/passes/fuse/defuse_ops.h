// DefuseOps: what FuseOps put into functions comes out of them.
//
//   (fn (%p0, Primitive=1) { nn.relu(add(%p0, 1f)) })(%x)   ->   nn.relu(add(%x, 1f))
//
// Of calls of primitive function literals alone; one that is bound, global or another compiler's is left. Exact inverse
// of FuseOps. Needs no types. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule defuse_ops(const IRModule& module);

}  // namespace headrace::passes
