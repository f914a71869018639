// Strides and iteration over shapes, for `eval`.
#pragma once

#include <algorithm>
#include <array>
#include <span>

#include "tensor/strides.h"

namespace headrace::ops {

// Strides of a dense tensor of shape `from` read at the indices of `to`, which it broadcasts to (stride 0 where it
// does).
Shape broadcast_strides(const Shape& from, const Shape& to);

// Makes one axis of those that all operands walk through as one, and drops those of size 1: the same walk with fewer
// and longer axes; at least one. No axis may be empty.
void join_axes(Shape& shape, std::span<Shape> strides);

// Handles one row of a walk. `begin` has the offset of each operand at the row's first index, `step` the distance to
// the next, `size` the number of indices. `body` is the argument of walk_rows.
using RowFn = void (*)(void* body, const int64_t* begin, const int64_t* step, int64_t size);

// Calls row(body, ...) for each row of `shape` in row-major order. This function is compiled once; only the row
// function is compiled for each element type and op.
void walk_rows(const Shape& shape, std::span<const Shape> strides, RowFn row, void* body);

// A walk over a shape in row-major order, made once and run many times: it gives the offset of each of N operands with
// those strides.
template <size_t N>
class OffsetWalk {
 public:
  OffsetWalk(Shape shape, std::array<Shape, N> strides) : shape_(std::move(shape)), strides_(std::move(strides)) {
    is_empty_ = std::find(shape_.begin(), shape_.end(), 0) != shape_.end();
    if (!is_empty_) join_axes(shape_, strides_);
  }

  // Calls body(offsets), a std::array<int64_t, N>, for each index.
  template <typename F>
  void run(F&& body) const {
    if (is_empty_) return;
    using Body = std::remove_reference_t<F>;
    walk_rows(shape_, strides_, run_row<Body>, const_cast<void*>(static_cast<const void*>(&body)));
  }

 private:
  template <typename Body>
  static void run_row(void* body, const int64_t* begin, const int64_t* step, int64_t size) {
    std::array<int64_t, N> offsets;
    std::copy_n(begin, N, offsets.begin());
    for (int64_t i = 0; i < size; ++i) {
      (*static_cast<Body*>(body))(std::as_const(offsets));
      for (size_t k = 0; k < N; ++k) offsets[k] += step[k];
    }
  }

  Shape shape_;
  std::array<Shape, N> strides_;
  bool is_empty_ = false;
};

// Makes and runs one walk.
template <size_t N, typename F>
void for_each_offset(const Shape& shape, const std::array<Shape, N>& strides, F&& body) {
  OffsetWalk<N>(shape, strides).run(std::forward<F>(body));
}

}  // namespace headrace::ops
