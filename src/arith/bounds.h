// Between which integers an expression of dimensions lies.
//
// Every variable stands for a dimension or for a count of elements, so it is at least 0. Each operand is bounded by
// itself: of n - min(1, n) this says no more than -1 or above.
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

// Nothing is known of what is no integer expression, nor of one of more than kMaxSize nodes. What stands in `known` of
// a variable takes the place of the above.
Bounds bounds_of(const PrimExpr& e, const KnownBounds& known = {});

}  // namespace headrace::arith
