#include "frontend/onnx/compositions/index.h"

#include "ops/tensor/broadcast.h"

namespace headrace::onnx {

Expr counted_from_begin(NodeContext& context, const Expr& indices, int64_t size) {
  const Span& span = context.span();
  const DataType dtype = context.dtype(indices);
  const Expr is_negative = ops::binary("less", indices, context.scalar(0, dtype), span);
  const Expr from_end = ops::add(indices, context.scalar(static_cast<double>(size), dtype), span);
  return ops::where(is_negative, from_end, indices, span);
}

}  // namespace headrace::onnx
