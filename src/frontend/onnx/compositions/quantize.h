#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns data / scale, rounded to `precision` and given in float32: QuantizeLinear with another precision than
// float32, in which qnn.quantize divides.
Expr rounded_quotient(NodeContext& context, const Expr& data, const Expr& scale, DataType precision);

// Convolves the integers of inputs 0 and `weight` in int32, less their zero points in inputs `x_zero` and `w_zero`: by
// qnn.conv2d, or for other ranks and zero points than it has by plain ops. What is padded is the zero point.
Expr integer_convolution(NodeContext& context, size_t weight, size_t x_zero, size_t w_zero);

// Multiplies the integers of inputs 0 and `b` in int32, less their zero points in inputs `a_zero` and `b_zero`: by
// qnn.dense, or for other ranks and zero points than it has by plain ops.
Expr integer_product(NodeContext& context, size_t b, size_t a_zero, size_t b_zero);

}  // namespace headrace::onnx
