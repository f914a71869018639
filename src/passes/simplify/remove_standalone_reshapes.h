// RemoveStandaloneReshapes: merges consecutive groups that only reshape into one, or none if the shape stays the same.
//
//   %1 = fn (%p, Primitive=1) { reshape(%p, newshape=[6]) }(%0);
//   fn (%p, Primitive=1) { reshape(%p, newshape=[3, 2]) }(%1)       ->   %0, where it has that shape; else one group
//
// Groups are the functions that FuseOps makes. A group that only reshapes computes nothing, because its result shares
// the memory of its operand, but it hides the operand from later passes. Keeps reshapes to a symbolic shape. Needs
// types; runs after FuseOps. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule remove_standalone_reshapes(const IRModule& module);

}  // namespace headrace::passes
