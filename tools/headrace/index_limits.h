// Finds the valid range of inputs that a program uses as indices, so that random inputs can be made for it.
#pragma once

#include "ir/module.h"

namespace headrace::tools {

// Returns a limit for each parameter of `main`: integers below it are valid indices into every axis that the program is
// known to index with the parameter, directly or after integer arithmetic. kRandomLimit if there is no such axis.
// `module` must be typed. Linear in its size.
std::vector<int64_t> index_limits(const IRModule& module);

}  // namespace headrace::tools
