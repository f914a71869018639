#include "frontend/onnx/parts/reduction.h"

#include <limits>

#include "frontend/onnx/node/op_row.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

Reduction read_axes(NodeContext& context, int64_t since) {
  Reduction reduction{context.input(0), std::nullopt, context.flag_attr("keepdims", true)};
  if (context.opset() >= since) {
    if (context.has(1)) reduction.axes = context.ints(1, "axes");
    reduction.is_over_nothing =
        context.flag_attr("noop_with_empty_axes", false) && (!reduction.axes || reduction.axes->empty());
  } else {
    if (context.has(1)) context.invalid("it has 2 inputs; up to opset {} axes are an attribute", since - 1);
    reduction.axes = context.ints_attr("axes");
  }
  // No axes named means all of them.
  if (reduction.axes && reduction.axes->empty()) reduction.axes.reset();
  return reduction;
}

Reduction read_reduction(NodeContext& context, int64_t since) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return read_axes(context, since);
}

namespace {

// The greatest (least) of no elements, where an axis that is reduced is empty: -infinity (infinity) throughout. Null
// where there are elements.
Expr extreme_of_none(NodeContext& context, bool is_max, const Expr& data, const Reduction& reduction) {
  const size_t rank = context.rank(data);
  const std::vector<PrimExpr> dims = context.dims(data);
  std::vector<bool> goes(rank, !reduction.axes);
  for (const int64_t axis : reduction.axes.value_or(Shape())) goes[context.axis_of(axis, rank)] = true;
  bool is_empty = false;
  for (size_t i = 0; i < rank; ++i) is_empty = is_empty || (goes[i] && is_int(dims[i], 0));
  if (!is_empty || !context.dtype(data).is_float()) return {};
  Shape shape;
  for (size_t i = 0; i < rank; ++i) {
    if (!goes[i]) shape.push_back(context.known_dim(data, i));
    if (goes[i] && reduction.keepdims) shape.push_back(1);
  }
  const double value = std::numeric_limits<double>::infinity() * (is_max ? -1 : 1);
  return ops::full(context.scalar(value, context.dtype(data)), shape, context.dtype(data), context.span());
}

}  // namespace

Expr reduced(NodeContext& context, std::string_view op, const Expr& data, const Reduction& reduction) {
  if (reduction.is_over_nothing) return data;
  if (op == "max" || op == "min") {
    if (Expr none = extreme_of_none(context, op == "max", data, reduction)) return none;
  }
  return ops::reduce(op, data, reduction.axes, reduction.keepdims, false, context.span());
}

}  // namespace headrace::onnx
