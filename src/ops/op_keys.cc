#include "ops/op_keys.h"

#include <algorithm>

namespace headrace::ops {

NDArray EvalInput::make_output(size_t i) const {
  HEADRACE_CHECK(i < out_types.size(), "result {} of {}", i, out_types.size());
  const Shape shape = out_types[i]->concrete_shape();
  if (work != nullptr) {
    double elements = 1;
    for (const int64_t dim : shape) elements *= static_cast<double>(dim);
    // A product past 2^60 is more than any memory, which NDArray::empty reports.
    const auto counted = static_cast<int64_t>(std::min(elements, 0x1p57));
    work->take_bytes(counted * static_cast<int64_t>(out_types[i]->dtype.bytes()));
    work->spend(counted);
  }
  return NDArray::empty(shape, out_types[i]->dtype);
}

}  // namespace headrace::ops
