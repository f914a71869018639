// PackDense: products with constant matrices read them in parts of as many rows as a vector has elements.
//
//   nn.dense(%x, %w)       %x: [128, 768], %w: a constant [3072, 768]
//     ->  nn.contrib_dense_pack(%x, layout_transform(%w, src_layout="NC", dst_layout="NC16n"))
//
// The result's columns of one part lie beside each other in memory for each term of the sum. A kernel then adds whole
// vectors, which needs no sum across a vector at the end, and what is fused behind the product is computed by vectors
// as well. Few rows of data do not gain by it: they read the matrix once, in any form. Considered are floats of 32 and
// 64 bits, whose matrix is a constant or made of constants, and has whole parts.
//
// Needs types. Preserves results up to the order in which a kernel adds.
#pragma once

#include "cost/machine.h"
#include "pass/pass.h"

namespace headrace::passes {

// Packs for the vectors of `machine`. Returns the module unchanged where it has none.
IRModule pack_dense(const IRModule& module, const cost::Machine& machine);

}  // namespace headrace::passes
