// Gives a compute form variables of its own: fusion substitutes the axes of one stage into another and must be able to
// tell them apart.
#pragma once

#include "tir/compute.h"

namespace headrace::tir {

// Returns `compute` with new variables, of the same names, for all axes, reduced axes and combined values. Its buffers
// and symbols stay.
Compute with_own_variables(Compute compute);

}  // namespace headrace::tir
