#include <limits>

#include "frontend/onnx/op_table.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

namespace {

struct Reduction {
  Expr data;
  std::optional<Shape> axes;  // nothing: all
  bool keepdims = true;
  bool is_over_nothing = false;  // every element is a sum of its own
};

// Axes are an attribute; an input from opset 18 on, of ReduceSum from 13 on.
constexpr int64_t kAxesInput = 18, kAxesInputOfSum = 13;

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

Reduction read_reduction(NodeContext& context, int64_t since = kAxesInput) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return read_axes(context, since);
}

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

Expr reduced(NodeContext& context, std::string_view op, const Expr& data, const Reduction& reduction) {
  if (reduction.is_over_nothing) return data;
  if (op == "max" || op == "min") {
    if (Expr none = extreme_of_none(context, op == "max", data, reduction)) return none;
  }
  return ops::reduce(op, data, reduction.axes, reduction.keepdims, false, context.span());
}

// Integers are reduced in float64, as the reference does it.
Reduction read_float_reduction(NodeContext& context) {
  Reduction reduction = read_reduction(context);
  const bool is_float = context.dtype(reduction.data).is_float();
  reduction.data = is_float ? context.widened(reduction.data) : context.cast(reduction.data, DataType::float_(64));
  return reduction;
}

// In the data's dtype again.
Expr as_data(NodeContext& context, const Expr& result) { return context.cast(result, context.dtype(context.input(0))); }

// ONNX ReduceSum (1, 11, 13).
Exprs convert_reduce_sum(NodeContext& context) {
  const Reduction reduction = read_reduction(context, kAxesInputOfSum);
  return {reduced(context, "sum", reduction.data, reduction)};
}

// ONNX ReduceProd (1, 11, 13, 18).
Exprs convert_reduce_prod(NodeContext& context) {
  const Reduction reduction = read_reduction(context);
  return {reduced(context, "prod", reduction.data, reduction)};
}

// ONNX ReduceMax, ReduceMin (1, 11, 12, 13, 18, 20); `of_bools` does it for truth values.
Exprs convert_extreme(NodeContext& context, std::string_view op, std::string_view of_bools) {
  const bool is_bool = context.opset() >= 20 && context.dtype(context.input(0)).is_bool();
  const Reduction reduction = is_bool ? read_axes(context, kAxesInput) : read_reduction(context);
  return {reduced(context, is_bool ? of_bools : op, reduction.data, reduction)};
}
Exprs convert_reduce_max(NodeContext& context) { return convert_extreme(context, "max", "any"); }
Exprs convert_reduce_min(NodeContext& context) { return convert_extreme(context, "min", "all"); }

Exprs convert_reduce_mean(NodeContext& context) {
  const Reduction reduction = read_reduction(context);
  return {reduced(context, "mean", reduction.data, reduction)};
}

Exprs convert_reduce_l1(NodeContext& context) {
  const Reduction reduction = read_reduction(context);
  return {reduced(context, "sum", ops::unary("abs", reduction.data, context.span()), reduction)};
}

Expr squares(NodeContext& context, const Reduction& reduction) {
  return reduced(context, "sum", ops::multiply(reduction.data, reduction.data, context.span()), reduction);
}

Exprs convert_reduce_sum_square(NodeContext& context) {
  Reduction reduction = read_reduction(context);
  reduction.data = context.widened(reduction.data);
  return {as_data(context, squares(context, reduction))};
}

Exprs convert_reduce_l2(NodeContext& context) {
  return {as_data(context, ops::unary("sqrt", squares(context, read_float_reduction(context)), context.span()))};
}

Exprs convert_reduce_log_sum(NodeContext& context) {
  const Reduction reduction = read_float_reduction(context);
  const Expr result = ops::unary("log", reduced(context, "sum", reduction.data, reduction), context.span());
  return {as_data(context, result)};
}

double greatest_finite(DataType dtype) {
  if (dtype == DataType::float_(64)) return std::numeric_limits<double>::max();
  return dtype == DataType::float_(16) ? 65504.0 : 3.3895e38;  // below the greatest float32 and bfloat16
}

// log(sum(e^x)) as log(sum(e^(x - m))) + m with m the greatest x, which cannot overflow; m is kept finite, so that
// infinities do not cancel.
Exprs convert_reduce_log_sum_exp(NodeContext& context) {
  const Reduction reduction = read_float_reduction(context);
  const Span& span = context.span();
  const double limit = greatest_finite(context.dtype(reduction.data));
  const auto greatest = [&](bool keepdims) {
    Reduction own = reduction;
    own.keepdims = keepdims;
    return ops::clip(reduced(context, "max", reduction.data, own), -limit, limit, span);
  };
  const Expr powers = ops::unary("exp", ops::subtract(reduction.data, greatest(true), span), span);
  const Expr logs = ops::unary("log", reduced(context, "sum", powers, reduction), span);
  return {as_data(context, ops::add(logs, greatest(reduction.keepdims), span))};
}

// ONNX ArgMax, ArgMin (1, 11, 12, 13).
Exprs convert_arg(NodeContext& context, std::string_view op) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_number, "numbers");
  const int64_t axis = context.int_attr("axis", 0);
  const bool keepdims = context.flag_attr("keepdims", true), last = context.flag_attr("select_last_index", false);
  return {ops::arg_reduce(op, x, Shape{axis}, keepdims, last, DataType::int_(64), context.span())};
}
Exprs convert_arg_max(NodeContext& context) { return convert_arg(context, "argmax"); }
Exprs convert_arg_min(NodeContext& context) { return convert_arg(context, "argmin"); }

}  // namespace

std::span<const OpRow> reduce_rows() {
  static constexpr OpRow kRows[] = {
      {"ReduceSum", convert_reduce_sum, 1, 2},
      {"ReduceMean", convert_reduce_mean, 1, 2},
      {"ReduceMax", convert_reduce_max, 1, 2},
      {"ReduceMin", convert_reduce_min, 1, 2},
      {"ReduceProd", convert_reduce_prod, 1, 2},
      {"ReduceL1", convert_reduce_l1, 1, 2},
      {"ReduceL2", convert_reduce_l2, 1, 2},
      {"ReduceSumSquare", convert_reduce_sum_square, 1, 2},
      {"ReduceLogSum", convert_reduce_log_sum, 1, 2},
      {"ReduceLogSumExp", convert_reduce_log_sum_exp, 1, 2},
      {"ArgMax", convert_arg_max, 1, 1},
      {"ArgMin", convert_arg_min, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
