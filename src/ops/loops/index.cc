#include "ops/loops/index.h"

namespace headrace::ops {

Shape broadcast_strides(const Shape& from, const Shape& to) {
  const Shape dense = dense_strides(from);
  Shape strides(to.size(), 0);
  const size_t missing = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) strides[i + missing] = from[i] == 1 ? 0 : dense[i];
  return strides;
}

void join_axes(Shape& shape, std::span<Shape> strides) {
  Shape joined;
  std::vector<Shape> joined_strides(strides.size());
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    bool continues = !joined.empty();
    for (size_t k = 0; continues && k < strides.size(); ++k)
      continues = joined_strides[k].back() == strides[k][i] * shape[i];
    if (continues) {
      joined.back() *= shape[i];
    } else {
      joined.push_back(shape[i]);
    }
    for (size_t k = 0; k < strides.size(); ++k) {
      if (continues) joined_strides[k].pop_back();
      joined_strides[k].push_back(strides[k][i]);
    }
  }
  if (joined.empty()) {
    joined.push_back(1);
    for (Shape& s : joined_strides) s.push_back(0);
  }
  shape = std::move(joined);
  std::move(joined_strides.begin(), joined_strides.end(), strides.begin());
}

void walk_rows(const Shape& shape, std::span<const Shape> strides, RowFn row, void* body) {
  const size_t last = shape.size() - 1, count = strides.size();
  std::vector<int64_t> begin(count, 0), step(count);
  for (size_t k = 0; k < count; ++k) step[k] = strides[k][last];
  std::vector<int64_t> index(last, 0);
  // To the next index of the axes before the last; false at the end.
  const auto advance = [&] {
    for (size_t a = last; a-- > 0;) {
      for (size_t k = 0; k < count; ++k) begin[k] += strides[k][a];
      if (++index[a] < shape[a]) return true;
      for (size_t k = 0; k < count; ++k) begin[k] -= strides[k][a] * shape[a];
      index[a] = 0;
    }
    return false;
  };
  do row(body, begin.data(), step.data(), shape[last]);
  while (advance());
}

}  // namespace headrace::ops
