// Row-major strides, in elements.
#pragma once

#include <span>

#include "object/shape_tuple.h"

namespace headrace {

// Returns row-major strides. An extent of 0 counts as 1, so that the other strides keep their meaning.
Shape dense_strides(std::span<const int64_t> shape);

// Returns whether `strides`, one for each dimension, walk `shape` row by row without gaps. Dimensions of extent 1 and
// empty tensors do not matter. Allocates nothing.
bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides);

}  // namespace headrace
