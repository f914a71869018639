// The ordered list of passes from a scheduled PrimFunc to one that a code generator takes.
#pragma once

#include "pass/pass.h"
#include "tir/stmt.h"

namespace headrace::tir_passes {

// Returns VectorizeLoop, UnrollLoop, LowerMath. Each rewrites the PrimFuncs of a module and leaves other functions
// alone. After them no loop is vectorized or unrolled (except one of more than 4,096 iterations). Each may be left out:
// a code generator then runs the iterations of such loops one after the other, and calls the C library.
std::vector<pass::Pass> pipeline();

// Runs the whole list on one function.
tir::PrimFunc run_pipeline(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
