// Strides and iteration over shapes, for `eval`.
#pragma once

#include <array>

#include "tensor/strides.h"

namespace headrace::ops {

// Strides of a dense tensor of shape `from` read at the indices of `to`, which it broadcasts to (stride 0 where it
// does).
Shape broadcast_strides(const Shape& from, const Shape& to);

// Walks `shape` in row-major order and calls body(offsets), a std::array<int64_t, N>: where each of N operands with
// those strides stands.
template <size_t N, typename F>
void for_each_offset(const Shape& shape, const std::array<Shape, N>& strides, F&& body) {
  for (int64_t dim : shape) {
    if (dim == 0) return;
  }
  std::array<int64_t, N> offsets{};
  Shape index(shape.size(), 0);
  while (true) {
    body(offsets);
    size_t axis = shape.size();
    for (; axis > 0; --axis) {
      const size_t a = axis - 1;
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][a];
      if (++index[a] < shape[a]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][a] * shape[a];
      index[a] = 0;
    }
    if (axis == 0) return;
  }
}

}  // namespace headrace::ops
