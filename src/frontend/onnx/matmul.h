// The product of ONNX MatMul, for the operators that are made of it.
#pragma once

#include "frontend/onnx/node_context.h"

namespace headrace::onnx {

// As numpy.matmul: leading dimensions broadcast; a vector is a row or a column that the result does not show.
Expr multiply(NodeContext& context, Expr a, Expr b);

}  // namespace headrace::onnx
