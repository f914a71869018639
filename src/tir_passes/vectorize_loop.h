// VectorizeLoop: a loop marked vectorized becomes vector operations.
//
//   for i in [0, 16) vectorized: out[j, i] = a[j, i] + b[j]
//   -> out[j, ramp(0, 1, 16)] = a[j, ramp(0, 1, 16)] + broadcast(b[j], 16)
//
// Runs before UnrollLoop (a vectorized loop may contain unrolled ones, but not the other way round). A loop whose body
// cannot be one vector operation becomes unrolled: a store that is not a ramp of stride one in the last dimension, a
// load with a stride above two, an if, a loop whose bounds use the variable, an extent of one. An if_then_else whose
// condition is the same for all lanes stays a branch; otherwise each lane selects its side, and loads are masked.
// Preserves results to the last bit.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir_passes {

tir::PrimFunc vectorize_loop(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
