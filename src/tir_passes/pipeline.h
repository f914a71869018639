// The ordered list of passes from a scheduled PrimFunc to one that a code generator takes.
#pragma once

#include "pass/pass.h"
#include "tir/stmt.h"

namespace headrace::tir_passes {

// VectorizeLoop, UnrollLoop, LowerMath: each rewrites the PrimFuncs of a module and leaves other functions alone. After
// them no loop is vectorized or unrolled (but for one of more than 4,096 iterations). Each may be left out: a code
// generator runs what is left of such loops one iteration after the other, and calls the C library.
std::vector<pass::Pass> pipeline();

// The whole list on one function.
tir::PrimFunc run_pipeline(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
