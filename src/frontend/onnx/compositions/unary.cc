#include "frontend/onnx/compositions/unary.h"

#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"

namespace headrace::onnx {

Expr infinite_of_sign(NodeContext& context, const Expr& x, bool is_negative) {
  const Expr zero = context.scalar(0, context.dtype(x));
  const Expr has_sign = ops::binary(is_negative ? "less" : "greater", x, zero, context.span());
  return ops::binary("logical_and", ops::unary("isinf", x, context.span()), has_sign, context.span());
}

}  // namespace headrace::onnx
