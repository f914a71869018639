// Copying between strided tensors and dense memory.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>

namespace headrace {

inline constexpr int32_t kMaxStridedRank = 64;

// Copies the elements of `src`, of `item_bytes` each, row by row to `dst`. Its rank is at most kMaxStridedRank and its
// strides are given; they may be zero or negative. Allocates nothing.
void copy_strided(const DLTensor& src, size_t item_bytes, std::byte* dst);
// Copies as many dense elements from `src` to the places of the elements of `dst`, likewise.
void copy_to_strided(const std::byte* src, size_t item_bytes, const DLTensor& dst);

}  // namespace headrace
