// Moving a tensor's elements to another order of its dimensions, fast enough for large weights.
#pragma once

#include "ops/op_keys.h"

namespace headrace::ops {

// Sets each element of the dense `to` to that of `from` at the sum of its index by `strides`, counted in elements.
// Splits the first dimension into parts for several threads. If the elements of another dimension than the last are
// neighbours in `from` (stride 1), it transposes that dimension and the last one in square blocks, so that the lines of
// a block stay in the cache; otherwise it copies row by row.
void permute(const EvalInput& input, const NDArray& from, const Shape& strides, const NDArray& to);

}  // namespace headrace::ops
