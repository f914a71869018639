#include "ops/loops/permute.h"

#include <algorithm>
#include <cstring>

#include "ops/loops/move.h"

namespace headrace::ops {

namespace {

// Elements of a block along each of its two dimensions: its lines are in the first cache, both read and written.
constexpr int64_t kBlock = 16;

// to[r, c] = from[c, r]: lines of both lie `step` and `line` elements apart.
template <typename T>
void transpose_plane(const T* from, int64_t step, T* to, int64_t line, int64_t rows, int64_t columns) {
  for (int64_t r0 = 0; r0 < rows; r0 += kBlock) {
    const int64_t r1 = std::min(rows, r0 + kBlock);
    for (int64_t c0 = 0; c0 < columns; c0 += kBlock) {
      const int64_t c1 = std::min(columns, c0 + kBlock);
      for (int64_t r = r0; r < r1; ++r) {
        for (int64_t c = c0; c < c1; ++c) to[r * line + c] = from[c * step + r];
      }
    }
  }
}

template <typename T>
void copy_row(const T* from, int64_t step, T* to, int64_t count) {
  if (step == 1) {
    std::memcpy(to, from, static_cast<size_t>(count) * sizeof(T));
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[i * step];
  }
}

// Elements of the shape: from[index . strides] to to[index . places].
template <typename T>
void permute_part(const T* from, const Shape& strides, T* to, const Shape& places, const Shape& shape) {
  const size_t last = shape.size() - 1;
  const auto found = std::find(strides.begin(), strides.end() - 1, 1);
  const auto unit = strides[last] == 1 ? last : static_cast<size_t>(found - strides.begin());
  Shape outer = shape;
  outer[last] = 1;
  outer[unit] = 1;
  for_each_index(outer, [&](const Shape& index) {
    const T* source = from + dot(index, strides);
    T* target = to + dot(index, places);
    if (unit == last) {
      copy_row(source, strides[last], target, shape[last]);
    } else {
      transpose_plane(source, strides[last], target, places[unit], shape[unit], shape[last]);
    }
  });
}

template <typename T>
void permute_as(const EvalInput& input, const NDArray& from, const Shape& strides, const NDArray& to,
                const Shape& shape) {
  const Shape places = dense_strides(shape);
  input.for_each_part(shape[0], static_cast<double>(places[0]), [&](int64_t begin, int64_t end) {
    Shape part = shape;
    part[0] = end - begin;
    permute_part(from.data<T>() + begin * strides[0], strides, to.data<T>() + begin * places[0], places, part);
  });
}

}  // namespace

void permute(const EvalInput& input, const NDArray& from, const Shape& strides, const NDArray& to) {
  if (to.num_elements() == 0) return;
  Shape shape = to.shape();
  std::array<Shape, 1> joined{strides};
  join_axes(shape, joined);
  switch (to.dtype().bytes()) {
    case 1:
      return permute_as<uint8_t>(input, from, joined[0], to, shape);
    case 2:
      return permute_as<uint16_t>(input, from, joined[0], to, shape);
    case 4:
      return permute_as<uint32_t>(input, from, joined[0], to, shape);
    case 8:
      return permute_as<uint64_t>(input, from, joined[0], to, shape);
    default:
      HEADRACE_CHECK(false, "elements of {} bytes", to.dtype().bytes());
  }
}

}  // namespace headrace::ops
