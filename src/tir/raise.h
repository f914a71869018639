// Raises plainly written loops to the compute form. In that form an op fuses with others, and the schedules of lower/
// make its loops.
//
//   for i in serial(4) { for j in serial(5) { y[j, i] = x[i, j] * 2f; } }   ->   y[j, i] = x[i, j] * 2
//
// Can be raised, for each buffer that is stored to (an output, or one that is allocated around its nests):
//   - one store in a perfect nest of serial loops from 0, with int64 variables, whose index is the loop variables in
//     any order (in a dimension of 1 also 0), and whose loops cover the buffer; several such stores may share a nest;
//   - a reduction by +, *, max or min: a first store, then loops that store the element combined with a value, in the
//     same nest or in separate ones; a last store may compute with the result, and the result may be kept in a local
//     buffer of one element. The first store may have any value;
//   - lets directly around a store.
// All other loops are refused, because their order or their stores mean more than the form can express.
#pragma once

#include "base/expected.h"
#include "tir/compute.h"

namespace headrace::tir {

// Raises `function`. The result has the function's inputs, outputs and shapes, and variables of its own. A refusal has
// the code FUSE_PATTERN and says which part of the function prevents raising. Sums may be added in another order than
// the function's. UserError: `function` is not well-formed (verify.h).
Expected<Compute> raise(const PrimFunc& function);

}  // namespace headrace::tir
