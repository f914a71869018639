// UnrollLoop: a loop marked unrolled becomes a copy of its body for each iteration, as does any loop of one iteration.
//
//   for i in [0, 2) unrolled: a[i] = i   ->   a[0] = 0; a[1] = 1
//
// Runs after VectorizeLoop, which turns loops it cannot vectorise into unrolled ones, and before LowerMath. A loop of
// more than one iteration stays past 4,096 copies of a body, or 65,536 statements and operations in all copies (a
// function that LowerMath replaces counts 40). Preserves results to the last bit.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir_passes {

tir::PrimFunc unroll_loop(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
