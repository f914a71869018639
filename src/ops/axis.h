// Axes as attributes give them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace headrace::ops {

// Returns `axis` counted from 0 for a tensor of `rank` dimensions; a negative one counts from the end. A type relation
// has checked that it is inside (ops/register.h).
inline size_t normal_axis(int64_t axis, size_t rank) {
  return static_cast<size_t>(axis < 0 ? axis + static_cast<int64_t>(rank) : axis);
}

}  // namespace headrace::ops
