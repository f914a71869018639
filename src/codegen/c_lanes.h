// Vectors as their lanes, for languages without vectors.
#pragma once

#include <unordered_map>

#include "ir/prim_expr.h"

namespace headrace::codegen {

// The value of each vector variable in one lane.
using LaneValues = std::unordered_map<const PrimVarNode*, PrimExpr>;

// Returns the number that lane `lane` (int64) of the vector `e` holds; a scalar stays as it is. Parts that `e` shares
// stay shared, and a guard that chooses lane by lane becomes a guard of one. A vector_load keeps its form, with one
// lane. UserError: an expression of too many operations within each other.
PrimExpr lane_of(const PrimExpr& e, const PrimExpr& lane, const LaneValues& values);

}  // namespace headrace::codegen
