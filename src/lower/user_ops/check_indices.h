// Finds indices of a compute form that are certainly out of bounds.
#pragma once

#include "tir/compute.h"

namespace headrace::lower {

// Returns a sentence on the first index that some iteration certainly takes out of bounds, with the remedy; nothing
// when none is found. Checks sums of axes with integer factors over known sizes, outside of branches of if_then_else,
// whose condition may prevent the read.
std::optional<std::string> find_index_outside(const tir::Compute& form);

}  // namespace headrace::lower
