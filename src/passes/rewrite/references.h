// Which functions of a module are referred to, by name.
#pragma once

#include <string>
#include <unordered_set>

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::passes {

// Returns the functions that the expression refers to, as callees or as values.
std::unordered_set<std::string> referenced_functions(const Expr& expr);
// Returns the functions that any relay function of the module refers to.
std::unordered_set<std::string> referenced_functions(const IRModule& module);

}  // namespace headrace::passes
