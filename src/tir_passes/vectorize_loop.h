// VectorizeLoop: a loop marked vectorized becomes vector operations.
//
//   for i in [0, 16) vectorized: out[j, i] = a[j, i] + b[j]
//   -> out[j, ramp(0, 1, 16)] = a[j, ramp(0, 1, 16)] + broadcast(b[j], 16)
//
// Runs before UnrollLoop (a vectorized loop may hold unrolled ones, not the other way round). A loop whose body cannot
// be one vector operation becomes unrolled: a store that is no ramp of stride one in the last dimension, a load of more
// than stride two, an if, a loop whose bounds use the variable, an extent of one. An if_then_else whose
// condition is one for all lanes stays a branch; of another each lane takes its side, and loads are masked. Preserves
// results to the last bit.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir_passes {

tir::PrimFunc vectorize_loop(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
