// Finds the variables that functions inside an expression capture from outside.
#pragma once

#include <unordered_map>
#include <vector>

#include "relay/expr.h"

namespace headrace::relay {

// For each function literal the variables that it uses and does not bind, in order of first occurrence.
using Captures = std::unordered_map<const Object*, std::vector<Var>>;
// Adds the captures of `function` and of all literals in it. Linear in its size and in what is added.
void find_captures(const Expr& function, Captures& captures);

}  // namespace headrace::relay
