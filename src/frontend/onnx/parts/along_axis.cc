#include "frontend/onnx/parts/along_axis.h"

#include "arith/canonical.h"
#include "frontend/onnx/node/op_row.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

Exprs along_axis(NodeContext& context, const std::function<Expr(const Expr& x, int64_t axis)>& along) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const bool flattens = context.opset() < 13;
  const size_t rank = context.rank(x);
  const int64_t requested = context.int_attr("axis", flattens ? 1 : -1);
  const auto count = static_cast<int64_t>(rank);
  // A one-dimensional tensor flattened at 1 has rows of one element; from opset 11 on no axis is as great as the rank.
  const size_t axis = context.opset() < 11 && requested == count ? rank : context.axis_of(requested, rank);
  if (!flattens || axis + 1 == rank) return {along(x, static_cast<int64_t>(axis))};
  using Dims = std::vector<PrimExpr>;
  const Dims dims = context.dims(x);
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const Expr matrix = context.reshape(x, Dims{arith::product(Array<PrimExpr>(dims.begin(), middle)),
                                              arith::product(Array<PrimExpr>(middle, dims.end()))});
  return {ops::reshape_like(along(matrix, 1), x, context.span())};
}

}  // namespace headrace::onnx
