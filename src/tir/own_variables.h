// Compute forms that share no variables: fusion puts the axes of one stage in the place of another's, and must be able
// to tell them apart.
#pragma once

#include "tir/compute.h"

namespace headrace::tir {

// `compute` with new variables, of the same names, for all axes, reduced axes and combined values. Its buffers and
// symbols stay.
Compute with_own_variables(Compute compute);

// `e`, of any depth, with every variable in `values` replaced.
PrimExpr replace_variables(const PrimExpr& e, const std::unordered_map<const PrimVarNode*, PrimExpr>& values);

}  // namespace headrace::tir
