// The ordered list of passes from a scheduled PrimFunc to one that a code generator takes.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir_passes {

// After it no loop is vectorized or unrolled.
tir::PrimFunc run_pipeline(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
