#include "ops/op_keys.h"

namespace headrace::ops {

NDArray EvalInput::make_output(size_t i) const {
  HEADRACE_CHECK(i < out_types.size(), "result {} of {}", i, out_types.size());
  return NDArray::empty(out_types[i]->concrete_shape(), out_types[i]->dtype);
}

}  // namespace headrace::ops
