// Compute forms that share no variables: fusion puts the axes of one stage in the place of another's, and must be able
// to tell them apart.
#pragma once

#include "tir/compute.h"

namespace headrace::tir {

// `compute` with new variables, of the same names, for all axes, reduced axes and combined values. Its buffers and
// symbols stay.
Compute with_own_variables(Compute compute);

}  // namespace headrace::tir
