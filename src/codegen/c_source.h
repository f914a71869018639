// tir to C: the text of kernels that any compiler of C99 makes the same kernels of, with the signature hr_kernel.
//
// Numbers are those of native code (codegen/llvm/kernel_builder.h), to the bit where the compiler keeps to IEEE 754 and
// joins no multiplication and addition into one (the text tells clang and gcc so): float16 and bfloat16 are computed as
// float and rounded after every operation, integers wrap, division by zero gives 0, float to integer saturates. Nothing
// in it is undefined behaviour, but for what the tir leaves open: an index out of bounds, an element that was never
// written. exp, log, tanh and erf of float32 are LowerMath's; other functions are the C library's (-lm).
#pragma once

#include <span>
#include <string>

#include "tir/stmt.h"

namespace headrace::codegen {

// One source file of these kernels, each of its own symbol. They need not have gone through any pass of tir_passes/:
// loops that are marked vectorized or unrolled are plain loops, a parallel one calls env->parallel_for as native code
// does, vectors are loops over their lanes. The file needs no header but those of the C library. The same kernels, the
// same text. UserError: a symbol that is no identifier of C or that the file needs itself, a dtype that C does not
// compute with, an expression of too many operations within each other.
std::string c_source(std::span<const tir::PrimFunc> kernels);

}  // namespace headrace::codegen
