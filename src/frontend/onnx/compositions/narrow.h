// Casts to dtypes below 16 bits, where ONNX's differ from Relay's.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Casts `x` to a dtype as ONNX's Cast does. Relay's casts saturate. With `saturate` false, floats that a float8 does
// not hold become an infinity, or NaN in formats without infinities. Floats cast to integers of 4 or 2 bits keep the
// low bits of the integer, as numpy's do; ONNX leaves those out of range undefined.
Expr cast_as_onnx(NodeContext& context, const Expr& x, DataType dtype, bool saturate = true);

}  // namespace headrace::onnx
