// Sizes of views, with every overflow and every negative number caught: the numbers come from files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "tensor/data_type.h"

namespace headrace::artifact {

// No tensor is larger; products stay far below the limit of int64_t.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;
inline constexpr size_t kMaxRank = 32;

// Returns the bytes of a contiguous tensor (elements below 8 bits take a byte each), or nothing when a dimension is
// negative, the rank is above kMaxRank, the dtype is void, or the size is above kMaxTensorBytes.
std::optional<int64_t> tensor_nbytes(DataType dtype, std::span<const int64_t> shape);

// Returns the bytes from the first to just after the last element of a strided view; 0 when it has no elements. Returns
// nothing in the cases above, when a stride is negative, or when strides and shape differ in rank. Empty strides mean
// contiguous.
std::optional<int64_t> view_nbytes(DataType dtype, std::span<const int64_t> shape, std::span<const int64_t> strides);

}  // namespace headrace::artifact
