// The text form of a program: a Relay module in destination passing form, which prints, parses and runs in the
// interpreter like any other.
//
//   def @main(%x, %y) {                                  // inputs, then outputs: attribute num_outputs
//     let %s0 = memory.alloc_storage(size=256);
//     let %t0 = memory.view(%s0, byte_offset=0, shape=[8, 8], dtype="float32");
//     let %_ = call_dps(@fused_nn_relu_1f0e..., (%x,), (%t0,));
//     let %_ = memory.kill(%s0);
//     let %t1 = memory.view(%y, byte_offset=128, shape=[8, 4], dtype="float32", strides=[8, 1]);
//     let %_ = memory.copy(%x, %t1);
//     ()
//   }
//
// Once memory is planned, all storages at one location are one, %arena, at the start of main, and nothing is killed.
// For bounded outputs the body gives the extents at its end, as a tuple of int64[1], and the attribute output_extents
// has three numbers for each: which output, which axis, which item of that tuple.
#pragma once

#include "plan/program.h"

namespace headrace::plan {

// Returns the module, with types. Its main calls the program's functions, which are the other functions of the module.
IRModule to_module(const Program& program);

// Reads a module of that form, which has types. Views of an arena become views of one storage, which
// plan_memory places again. UserError at the place where the module has another form.
Program from_module(const IRModule& module);

// Attribute of such a main: how many of its last parameters are outputs.
inline constexpr const char* kNumOutputs = "num_outputs";
// Attribute that lists the outputs that a run may make shorter; passes::bounded_outputs_of reads it.
inline constexpr const char* kOutputExtents = "output_extents";

}  // namespace headrace::plan
