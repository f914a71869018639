#include "ops/index.h"

namespace headrace::ops {

Shape broadcast_strides(const Shape& from, const Shape& to) {
  const Shape dense = dense_strides(from);
  Shape strides(to.size(), 0);
  const size_t missing = to.size() - from.size();
  for (size_t i = 0; i < from.size(); ++i) strides[i + missing] = from[i] == 1 ? 0 : dense[i];
  return strides;
}

}  // namespace headrace::ops
