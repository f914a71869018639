// Builds the products of ONNX MatMul and Gemm, for these and the operators that contain them.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Multiplies as numpy.matmul: leading dimensions broadcast; a vector counts as a row or a column, whose extra dimension
// is removed from the result.
Expr multiply(NodeContext& context, Expr a, Expr b);

// Multiplies matrices of int8 or uint8 by qnn.dense: (a - a_zero) * (b - b_zero) in int32, for a[M, K] and b[K, N].
// `a_zero` is a scalar, `b_zero` a scalar or one number for each column of b; both are int32.
Expr quantized_product(NodeContext& context, const Expr& a, const Expr& b, const Expr& a_zero, const Expr& b_zero);

// Returns the result of ONNX Gemm (6, 7, 9, 11, 13), whose inputs and attributes it reads.
Expr gemm(NodeContext& context);

// Multiplies by a factor of a float attribute. Throws Refused if integers have another factor than 1.
Expr times_factor(NodeContext& context, const Expr& x, double factor);

}  // namespace headrace::onnx
