// Copying a strided tensor into contiguous memory.
#pragma once

#include <dlpack/dlpack.h>

#include <cstddef>

namespace headrace::executors {

// Copies the elements of `src` (its rank at most artifact::kMaxRank, its strides given) row by row to `dst`. Strides
// may be zero or negative. False when elements are smaller than a byte. Allocates nothing.
bool copy_strided(const DLTensor& src, std::byte* dst);

}  // namespace headrace::executors
