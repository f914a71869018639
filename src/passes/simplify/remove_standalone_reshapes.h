// RemoveStandaloneReshapes: of the groups that only reshape, no more are left than one between two that compute.
//
//   %1 = fn (%p, Primitive=1) { reshape(%p, newshape=[6]) }(%0);
//   fn (%p, Primitive=1) { reshape(%p, newshape=[3, 2]) }(%1)       ->   %0, where it has that shape; else one group
//
// A group is what FuseOps makes; one that only reshapes computes nothing (its result lies where its operand does), but
// hides the operand from those after it. A result whose shape is symbolic stays. Needs types; runs after FuseOps.
// Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule remove_standalone_reshapes(const IRModule& module);

}  // namespace headrace::passes
