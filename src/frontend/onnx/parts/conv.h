// Builds the convolutions of ONNX Conv and ConvTranspose, for these and the operators that contain one.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Convolves as the attributes of Conv say, which it reads; `data` has the shape of input 0.
Expr convolution(NodeContext& context, const Expr& data, const Expr& weight);
// Convolves int8 or uint8 images, likewise, by qnn.conv2d, whose arguments are given: data, weight, zero points,
// scales.
Expr quantized_convolution(NodeContext& context, const Array<Expr>& args);
// Convolves input 0 by input 1 as the attributes of ConvTranspose say, which it reads.
Expr transposed_convolution(NodeContext& context);
// Adds the bias in input 2, if there is one, to the result of a convolution.
Expr with_bias(NodeContext& context, const Expr& result);

}  // namespace headrace::onnx
