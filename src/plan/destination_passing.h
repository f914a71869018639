// Destination passing: from a dataflow of fused groups to a list of steps that say where every value lives.
//
//   def @main(%x) { %0 = fn(primitive)(%x); ... }
//   ->
//   def @main(%x, %y) {                                  // inputs, then outputs: attribute num_outputs
//     let %s0 = memory.alloc_storage(size=256);
//     let %t0 = memory.view(%s0, byte_offset=0, shape=[8, 8], dtype="float32");
//     let %_ = call_dps(@fused_nn_relu_1f0e..., (%x,), (%t0,));
//     let %_ = call_dps(@fused_add_77ab..., (%t0, %x), (%y,));
//     let %_ = memory.kill(%s0);
//     ()
//   }
//
// Equal groups become one global function, named after its ops and its content, with a parameter for each tensor of a
// tuple that it takes. A group that only reshapes becomes a view. A value that is an output of the program is written
// there at once; an output that is an input, a constant or another output is copied. Where main has bounded outputs
// (passes/forms/bound_outputs.h), their extents are no outputs: the body gives them at its end, as a tuple of int64[1],
// and the attribute output_extents has three numbers for each such output: which one, which axis, which item of that
// tuple. Their memory is never given back.
//
// Runs after FuseOps, which made the groups, and before plan_memory. Needs types. Linear in the program's size.
// UserError: control flow or closures in main (they need the VM), shapes that are not static, functions marked
// Primitive that FuseOps would not make (check_fused.h).
#pragma once

#include "relay/expr.h"

namespace headrace::plan {

// Returns `module` with main in that form; the other functions of `module` are dropped.
IRModule to_destination_passing(const IRModule& module);

// Attribute of a main in that form: how many of its last parameters are outputs.
inline constexpr const char* kNumOutputs = "num_outputs";
// And which of them a run may make shorter; passes::bounded_outputs_of reads it.
inline constexpr const char* kOutputExtents = "output_extents";

}  // namespace headrace::plan
