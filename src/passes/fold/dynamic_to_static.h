// DynamicToStatic: shape arithmetic that type inference has worked out disappears.
//
//   %0 = shape_of(%x);                                      x: (2, 3, 4)
//   %1 = take(%0, 0);
//   reshape(%x, stack((%1, -1i64)))                    ->   reshape(%x, newshape=[2, 12])
//
// An integer or bool op call whose elements are all known (relay::infer_type_and_values) becomes a Constant. An op that
// takes its shape (or slices, repetitions, widths, size) as an argument gets it as attributes where it is known:
// reshape, broadcast_to, full, zeros, ones, tile, strided_slice, nn.pad, image.resize2d; for reshape all sizes but one
// are enough, where the data's elements tell that one. The `_like` ops with a static result no longer read what they
// are like. What depends on a symbolic dimension stays, and what wraps in its dtype. An op whose values are inferred
// has its elements from the same inference that gives types, so a program that had a type has the same type after.
//
// Needs types. Runs before FoldConstant and FuseOps, since an op with attributes alone can be fused and lowered.
// Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule dynamic_to_static(const IRModule& module);

}  // namespace headrace::passes
