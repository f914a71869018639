// CanonicalizeCast: each elementwise reader of a widening cast gets a cast of its own.
//
//   %0 = cast(%x, dtype="float32");           %0 = cast(%x, dtype="float32");
//   (add(%0, 1f), multiply(%0, 2f))     ->    %1 = cast(%x, dtype="float32");
//                                             (add(%0, 1f), multiply(%1, 2f))
//
// A cast that several kernels read would be a kernel of its own that writes the wider values to memory; a copy in each
// reader costs next to nothing. Readers are elementwise and broadcasting ops. EliminateCommonSubexpr undoes it; run it
// after that, before FuseOps. Needs the types of what is cast. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule canonicalize_cast(const IRModule& module);

}  // namespace headrace::passes
