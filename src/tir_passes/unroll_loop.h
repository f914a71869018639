// UnrollLoop: a loop marked unrolled becomes a copy of its body for each iteration, as does any loop of one iteration.
//
//   for i in [0, 2) unrolled: a[i] = i   ->   a[0] = 0; a[1] = 1
//
// Runs after VectorizeLoop, which turns loops it cannot vectorise into unrolled ones, and before LowerMath. A loop of
// more than one iteration remains a loop where unrolling would make more than 4,096 copies of its body, or more than
// 65,536 statements and operations in all of them; an intrinsic that LowerMath expands later, such as exp, counts as 40
// operations. Preserves results to the last bit.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir_passes {

tir::PrimFunc unroll_loop(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
