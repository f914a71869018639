// BoundOutputs: results of main of a data-dependent size become buffers with room for the most there can be.
//
//   def @main(%x: Tensor[(5), float32]) {         def @main(%x, bounded_outputs=[0, 0, 1]) {
//     cast(argwhere(%x), dtype="int64")      ->     %0 = argwhere_bounded(%x);
//   }                                               (cast(%0.0, dtype="int64"), cast(%0.1, dtype="int64"))
//                                                 }
//
// The results become one flat tuple: the outputs in their order, then the extents, int64[1], which say how many indices
// of an output's axis are valid. The attribute bounded_outputs has three numbers for each bounded output: the output,
// its axis, the result that is the extent. Unknown sizes come from ops with a bounded form (ops::kBoundedForm):
// argwhere, strided_slice of one axis, from 0 in steps of 1, to a computed end, and ops of users. They propagate
// through ops that treat each index of the axis separately: elementwise functions, ops with ops::kTreatsApart
// (arithmetic with a tensor that has no such axis, transpose, squeeze, expand_dims, reshape of whole rows, take by such
// indices, strided_slice of other axes, ops of users), and ops of users whose compute form is elementwise or broadcast
// over a symbolic size. Elements of a buffer past the extent are unspecified, and none of these ops fails on them.
//
// A main with another result of unknown size stays as it is, and so does one that is called; plan/ reports them. Needs
// types. Runs after the canonical passes, which may find the size, and before FuseOps.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule bound_outputs(const IRModule& module);

// Text may not give it: the driver refuses a main that has it.
inline constexpr const char* kBoundedOutputs = "bounded_outputs";

// An output of main, and the result that holds its extent.
struct BoundedOutput {
  size_t output = 0, axis = 0, extent = 0;
};

// Reads that attribute of main, or another one with such rows; nothing when main does not have it.
std::vector<BoundedOutput> bounded_outputs_of(const relay::FunctionNode& main,
                                              std::string_view attribute = kBoundedOutputs);

}  // namespace headrace::passes
