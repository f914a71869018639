#include "tensor/strides.h"

#include <algorithm>

namespace headrace {

Shape dense_strides(std::span<const int64_t> shape) {
  Shape strides(shape.size());
  uint64_t stride = 1;  // unsigned: that of an empty tensor may wrap
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(shape[i], 1));
  }
  return strides;
}

bool is_dense(std::span<const int64_t> shape, std::span<const int64_t> strides) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return true;
  uint64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != static_cast<int64_t>(stride)) return false;
    stride *= static_cast<uint64_t>(shape[i]);
  }
  return true;
}

}  // namespace headrace
