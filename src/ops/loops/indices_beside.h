// Checks of index tensors that have the shape of their data except along one axis.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// Checks the indices of gather and scatter_elements: they have the data's number of dimensions, and none except `axis`
// is longer than the data's. Fails naming both.
void check_indices_beside(const RelationInput& input, const TensorType& data, const TensorType& indices, size_t axis);

}  // namespace headrace::ops
