// Which values of a function body only a run can compute.
#pragma once

#include <unordered_set>

#include "relay/expr.h"

namespace headrace::passes {

// Returns the expressions of a body that are not constants, and not made of constants alone.
std::unordered_set<const Object*> varying_values(const Expr& body);

}  // namespace headrace::passes
