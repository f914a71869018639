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

// A walk over a shape in row-major order, made once and run often: where each of N operands with those strides stands.
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
    const size_t last = shape_.size() - 1;
    std::array<int64_t, N> begin{}, step{};
    for (size_t k = 0; k < N; ++k) step[k] = strides_[k][last];
    Shape index(last, 0);
    do {
      std::array<int64_t, N> offsets = begin;
      for (int64_t i = 0; i < shape_[last]; ++i) {
        body(std::as_const(offsets));
        for (size_t k = 0; k < N; ++k) offsets[k] += step[k];
      }
    } while (advance(index, begin));
  }

 private:
  // To the next index of the axes before the last; false at the end.
  bool advance(Shape& index, std::array<int64_t, N>& at) const {
    for (size_t a = index.size(); a-- > 0;) {
      for (size_t k = 0; k < N; ++k) at[k] += strides_[k][a];
      if (++index[a] < shape_[a]) return true;
      for (size_t k = 0; k < N; ++k) at[k] -= strides_[k][a] * shape_[a];
      index[a] = 0;
    }
    return false;
  }

  Shape shape_;
  std::array<Shape, N> strides_;
  bool is_empty_ = false;
};

// The same for one that is run once.
template <size_t N, typename F>
void for_each_offset(const Shape& shape, const std::array<Shape, N>& strides, F&& body) {
  OffsetWalk<N>(shape, strides).run(std::forward<F>(body));
}

}  // namespace headrace::ops
