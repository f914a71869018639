// The reference interpreter of tir: what a PrimFunc computes. Slow and plain; tir passes and code generators are tested
// against it.
//
// Numbers: integers wrap; division by zero gives 0, as does its remainder; float16 and bfloat16 are computed as float32
// and rounded after every operation; min and max give NaN when a side is NaN; a shift by the width or more gives what
// shifting step by step would; functions are those of the C library in the operand's dtype. Native code gives the same
// bits (of a NaN, some).
#pragma once

#include "tensor/ndarray.h"
#include "tir/stmt.h"

namespace headrace::interp {

struct TirOptions {
  // Runs the iterations of parallel loops last first: what depends on their order comes out differently.
  bool reverse_parallel = false;
};

// Runs `function` on its inputs, which it does not change, and gives its outputs. Symbols get their values from the
// inputs' shapes and strides. An element that was never written may be read and computed with, as long as no output, no
// branch, no index and no assertion depends on it. UserError: one of these does; a function that is not well-formed
// (tir/verify.h) or has an output whose shape the inputs do not tell, or with strides; a wrong number, shape, strides
// or dtype of inputs; an index out of bounds, with the statement; an assertion, with its message alone; pointers and
// dtypes of less than a byte.
std::vector<NDArray> run_prim_func(const tir::PrimFunc& function, const std::vector<NDArray>& inputs,
                                   const TirOptions& options = {});

}  // namespace headrace::interp
