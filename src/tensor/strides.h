// Row-major strides, in elements.
#pragma once

#include <span>

#include "object/shape_tuple.h"

namespace headrace {

// An extent of 0 counts as 1: there is nothing to reach, and the other strides keep their meaning.
Shape dense_strides(std::span<const int64_t> shape);

// Whether `strides`, one a dimension, walk `shape` row by row without gaps; dimensions of extent 1 and empty tensors
// don't matter. Allocates nothing.
bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides);

}  // namespace headrace
