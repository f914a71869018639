// Builds the product of ONNX MatMul, for MatMul and the operators that contain it.
#pragma once

#include "frontend/onnx/node_context.h"

namespace headrace::onnx {

// Multiplies as numpy.matmul: leading dimensions broadcast; a vector counts as a row or a column, whose extra dimension
// is removed from the result.
Expr multiply(NodeContext& context, Expr a, Expr b);

}  // namespace headrace::onnx
