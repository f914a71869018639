// The buffer that most tests of loops and schedules need.
#pragma once

#include "ir/prim_expr.h"
#include "kit/dtypes.h"

namespace headrace::kit {

// Makes a compact buffer of float32.
inline Buffer float_buffer(const std::string& name, const Shape& shape) {
  return make_buffer(name, kF32, to_dims(shape));
}

}  // namespace headrace::kit
