// Builds the convolution of ONNX Conv, for Conv and the operators that contain it.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Convolves as the attributes of Conv say, which it reads; `data` has the shape of input 0.
Expr convolution(NodeContext& context, const Expr& data, const Expr& weight);

}  // namespace headrace::onnx
