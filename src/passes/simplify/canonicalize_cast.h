// CanonicalizeCast: copies a widening cast into each of its elementwise readers.
//
//   %0 = cast(%x, dtype="float32");           %0 = cast(%x, dtype="float32");
//   (add(%0, 1f), multiply(%0, 2f))     ->    %1 = cast(%x, dtype="float32");
//                                             (add(%0, 1f), multiply(%1, 2f))
//
// A cast that several kernels read would become a separate kernel, which writes the wider values to memory. A copy
// fused into each reader costs almost nothing. Readers are elementwise and broadcasting ops. Run it after
// EliminateCommonSubexpr, which would undo it, and before FuseOps. Needs the types of the operands of casts. Preserves
// results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule canonicalize_cast(const IRModule& module);

}  // namespace headrace::passes
