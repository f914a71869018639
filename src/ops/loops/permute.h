// Moving a tensor's elements to another order of its dimensions, fast enough for large weights.
#pragma once

#include "ops/op_keys.h"

namespace headrace::ops {

// Sets each element of the dense `to` to that of `from` at the sum of its index by `strides`, counted in elements.
// Works in parts along the first dimension, by planes in blocks where another dimension than the last lies side by side
// in `from`.
void permute(const EvalInput& input, const NDArray& from, const Shape& strides, const NDArray& to);

}  // namespace headrace::ops
