// RemoveUnusedFunctions: functions of the module that no entry reaches are dropped.
//
//   def @unused(...) {...}  ->               a function that `main` does not reach
//
// Entries: `main`, functions with a global_symbol, and those that are not relay's. A module without `main` is left
// alone. Needs no types. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule remove_unused_functions(const IRModule& module);

}  // namespace headrace::passes
