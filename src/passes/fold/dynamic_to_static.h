// DynamicToStatic: replaces shape arithmetic with the values that type inference has computed.
//
//   %0 = shape_of(%x, dtype="int64");                       x: (2, 3, 4)
//   %1 = take(%0, 0);
//   reshape(%x, stack((%1, -1i64)))                    ->   reshape(%x, newshape=[2, 12])
//
// An integer or bool op call whose elements are all known (relay::infer_type_and_values) becomes a Constant. An op that
// takes its shape (or slices, repetitions, widths, size) as an argument gets it as attributes where it is known:
// reshape, broadcast_to, full, zeros, ones, tile, strided_slice, nn.pad, image.resize2d; for reshape all sizes but one
// are enough if the number of the data's elements determines the last one. The `_like` ops with a static result no
// longer read the operand that gives the shape. Expressions that depend on a symbolic dimension, and integers that
// overflow their dtype, stay. The values come from the same inference that computes types, so the program's types do
// not change.
//
// Needs types. Runs before FoldConstant and FuseOps, since an op with attributes alone can be fused and lowered.
// Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule dynamic_to_static(const IRModule& module);

}  // namespace headrace::passes
