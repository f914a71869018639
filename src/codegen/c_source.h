// Translates tir to C: kernels as C99 text, with the signature hr_kernel.
//
// Numbers are those of native code (codegen/llvm/kernel_builder.h), to the bit when the compiler follows IEEE 754 and
// does not contract multiplications and additions (the text tells clang and gcc so): float16 and bfloat16 are computed
// as float and rounded after every operation, integers wrap, division by zero gives 0, float to integer saturates. The
// text has no undefined behaviour except where the tir has: an index out of bounds, an element that was never written.
// exp, log, tanh and erf of float32 are LowerMath's; other functions are the C library's (-lm).
#pragma once

#include <span>
#include <string>

#include "tir/stmt.h"

namespace headrace::codegen {

// Returns the text that a file of such kernels begins with: the headers of the C library, and the types of the kernel
// ABI unless headrace/kernel_abi.h was included before.
std::string c_kernel_head();

// Returns one source file of these kernels, each with its own symbol. The kernels need not have gone through
// tir_passes/: loops marked vectorized or unrolled become plain loops, a parallel loop calls env->parallel_for as
// native code does, vectors become loops over their lanes. The file includes headers of the C library only. Equal
// kernels give equal text. UserError: a symbol that is not an identifier of C or that the file itself needs, a dtype
// that C does not support, an expression nested too deeply.
std::string c_source(std::span<const tir::PrimFunc> kernels);

}  // namespace headrace::codegen
