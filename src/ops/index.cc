#include "ops/index.h"

namespace headrace::ops {

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size());
  int64_t step = 1;
  for (size_t i = shape.size(); i > 0; --i) {
    strides[i - 1] = step;
    step *= shape[i - 1];
  }
  return strides;
}

Shape broadcast_strides(const Shape& from, const Shape& to) {
  const Shape dense = dense_strides(from);
  Shape strides(to.size(), 0);
  const size_t missing = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) strides[i + missing] = from[i] == 1 ? 0 : dense[i];
  return strides;
}

}  // namespace headrace::ops
