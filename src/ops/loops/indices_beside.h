// Indices that stand beside the data that they are of, one for each place along an axis.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// What gather and scatter_elements ask of their indices: the data's number of dimensions, and none longer than the
// data's but `axis`. Fails naming both.
void check_indices_beside(const RelationInput& input, const TensorType& data, const TensorType& indices, size_t axis);

}  // namespace headrace::ops
