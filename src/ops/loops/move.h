// Helpers of ops that only move elements: every dtype moves byte-wise.
#pragma once

#include <cstring>

#include "ops/loops/index.h"
#include "ops/register.h"

namespace headrace::ops {

// Calls visit(index) for each index of `shape`, in row-major order.
template <typename F>
void for_each_index(const Shape& shape, F&& visit) {
  for (const int64_t dim : shape) {
    if (dim == 0) return;
  }
  Shape index(shape.size(), 0);
  while (true) {
    visit(static_cast<const Shape&>(index));
    size_t axis = shape.size();
    while (axis > 0 && ++index[axis - 1] == shape[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

// Sets dst[index] to src at the element offset source_of(index); a negative offset leaves the element as it is.
template <typename F>
void move_elements(const NDArray& src, const NDArray& dst, F&& source_of) {
  const size_t bytes = dst.dtype().bytes();
  const char* from = src.data<char>();
  char* to = dst.data<char>();
  for_each_index(dst.shape(), [&](const Shape& index) {
    const int64_t offset = source_of(index);
    if (offset >= 0) std::memcpy(to, from + static_cast<size_t>(offset) * bytes, bytes);
    to += bytes;
  });
}

// Sets dst[to] to src[from], by element offsets.
inline void copy_element(const NDArray& src, int64_t from, const NDArray& dst, int64_t to) {
  const size_t bytes = dst.dtype().bytes();
  std::memcpy(dst.data<char>() + static_cast<size_t>(to) * bytes, src.data<char>() + static_cast<size_t>(from) * bytes,
              bytes);
}

inline int64_t dot(const Shape& index, const Shape& strides) {
  int64_t offset = 0;
  for (size_t i = 0; i < index.size(); ++i) offset += index[i] * strides[i];
  return offset;
}

// Returns the elements of a tensor of integers, as index_at() has them.
std::vector<int64_t> to_ints(const NDArray& array);
// Returns argument `i` as integers, where all of it is known.
std::optional<std::vector<int64_t>> known_ints(const RelationInput& input, size_t i);

// Makes the value inference of an op that moves elements of argument 0 (a tensor or a tuple of them): applies the op's
// own relation and `eval` to the elements' positions.
ValueInferenceFn value_by_moving(TypeRelationFn relation, EvalFn eval);

// Sets the properties that such ops share; call after arguments and attributes.
OpBuilder& moving(OpBuilder& op, const TypeRelationFn& relation, const EvalFn& eval,
                  FusionKind kind = FusionKind::injective);

}  // namespace headrace::ops
