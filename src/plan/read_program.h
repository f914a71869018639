// Reads a program from Relay: a dataflow of fused groups becomes steps over memory.
//
//   def @main(%x) { %0 = fn(Primitive=1) { nn.relu(..) }(%x); @region(%0) }
//   ->
//   a storage for %0, the output; the steps (@nn_relu_1f0e..., x -> storage) and (@region, storage -> output)
//
// Equal groups become one function of the program, named after its ops and its content, with a parameter for each
// tensor of a tuple that it takes; a function marked Compiler keeps its name. A group that only reshapes becomes a
// view. A value that is an output of the program is written there at once; an output that is an input, a constant or
// another output is copied. @region stands for a function marked Compiler. A bounded output
// (passes/forms/bound_outputs.h) is a buffer of the greatest size, with an extent, int64[1], that says how much of it
// is valid: the extent is not an output of the program, and its memory is not reused by later steps.
#pragma once

#include "plan/group_names.h"
#include "plan/program.h"

namespace headrace::plan {

// Reads the main of `module`, which has run through FuseOps and has types. Its groups are added to `groups`, which
// several programs may share. Linear in the program's size. UserError: control flow or closures in main (they need the
// VM), shapes that are not static, functions marked Primitive that FuseOps would not make (check_fused.h).
Program read_program(const IRModule& module, GroupTable& groups);

}  // namespace headrace::plan
