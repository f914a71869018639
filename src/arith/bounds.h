// Bounds of integer expressions over dimensions.
//
// Every variable stands for a dimension or for a count of elements, so it is at least 0. Operands are bounded
// independently: for n - min(1, n) the result is only "at least -1", although the true minimum is 0.
#pragma once

#include <unordered_map>

#include "ir/prim_expr.h"

namespace headrace::arith {

// Both ends included. The ends of int64 stand for no bound.
struct Bounds {
  int64_t least = INT64_MIN;
  int64_t greatest = INT64_MAX;
};

using KnownBounds = std::unordered_map<const PrimVarNode*, Bounds>;

// Returns the bounds of `e`. A variable that `known` lists has those bounds; any other is at least 0. Returns no bounds
// for an expression that is not an integer or that has more than kMaxSize nodes (arith/canonical.h).
Bounds bounds_of(const PrimExpr& e, const KnownBounds& known = {});

}  // namespace headrace::arith
