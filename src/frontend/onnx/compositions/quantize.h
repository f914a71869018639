#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns data / scale, rounded to `precision` and given in float32: QuantizeLinear with another precision than
// float32, in which qnn.quantize divides.
Expr rounded_quotient(NodeContext& context, const Expr& data, const Expr& scale, DataType precision);

}  // namespace headrace::onnx
