// UnrollLoop: a loop marked unrolled becomes its body, once an iteration; a loop of one iteration becomes its body too.
//
//   for i in [0, 2) unrolled: a[i] = i   ->   a[0] = 0; a[1] = 1
//
// Runs after VectorizeLoop, which turns what it cannot vectorise into unrolled loops, and before LowerMath. Past 4,096
// copies of a body, or 65,536 statements and operations in all copies (a function that LowerMath takes apart counts
// 40), a loop of more than one iteration stays a loop. Preserves results to the last bit.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir_passes {

tir::PrimFunc unroll_loop(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
