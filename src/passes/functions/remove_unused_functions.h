// RemoveUnusedFunctions: functions of the module that no entry reaches are dropped.
//
//   def @unused(...) {...}  ->               a function that `main` does not reach
//
// Entries: those of the option `entry_functions`, `main` without it; functions with a global_symbol, and those that are
// not relay's. A module without `main` is left alone, unless the option names others. Needs no types. Preserves results
// to the last bit.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// Reads "relay.RemoveUnusedFunctions.entry_functions" from the context's configuration.
std::vector<std::string> entry_functions(const pass::PassContext& context);

// Removes functions that no entry reaches. UserError for an entry that the module does not have, unless `main` is the
// only one.
IRModule remove_unused_functions(const IRModule& module, const std::vector<std::string>& entries = {"main"});

}  // namespace headrace::passes
