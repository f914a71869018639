// Which functions of a module are referred to, by name.
#pragma once

#include <string>
#include <unordered_set>

#include "ir/module.h"
#include "relay/expr.h"

namespace headrace::passes {

// By the expression: as callees, or as values.
std::unordered_set<std::string> referenced_functions(const Expr& expr);
// By any relay function of the module.
std::unordered_set<std::string> referenced_functions(const IRModule& module);

}  // namespace headrace::passes
