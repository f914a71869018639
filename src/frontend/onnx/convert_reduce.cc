#include <limits>

#include "frontend/onnx/op_table.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

namespace {

bool is_number(DataType dtype) { return !dtype.is_bool(); }
bool is_float(DataType dtype) { return dtype.is_float(); }

struct Reduction {
  Expr data;
  std::optional<Shape> axes;  // nothing: all
  bool keepdims = true;
};

// Axes are an attribute, or for ReduceSum from opset 13 on an input.
Reduction read_reduction(NodeContext& context, bool axes_input) {
  Reduction reduction{context.input(0), std::nullopt, context.flag_attr("keepdims", true)};
  context.check_dtype(reduction.data, "data", is_number, "numbers");
  if (axes_input) {
    if (context.has(1)) reduction.axes = context.ints(1, "axes");
  } else {
    if (context.has(1)) context.invalid("it has 2 inputs; up to opset 12 axes are an attribute");
    reduction.axes = context.ints_attr("axes");
  }
  // No axes named means all of them.
  if (reduction.axes && reduction.axes->empty()) reduction.axes.reset();
  return reduction;
}

Expr reduced(NodeContext& context, std::string_view op, const Expr& data, const Reduction& reduction) {
  return ops::reduce(op, data, reduction.axes, reduction.keepdims, false, context.span());
}

Reduction read_float_reduction(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  return read_reduction(context, false);
}

// ONNX ReduceSum (1, 11, 13).
Exprs convert_reduce_sum(NodeContext& context) {
  const bool noop = context.opset() >= 13 && context.flag_attr("noop_with_empty_axes", false);
  const Reduction reduction = read_reduction(context, context.opset() >= 13);
  if (noop && !reduction.axes) return {reduction.data};
  return {reduced(context, "sum", reduction.data, reduction)};
}

Exprs convert_plain(NodeContext& context, std::string_view op) {
  const Reduction reduction = read_reduction(context, false);
  return {reduced(context, op, reduction.data, reduction)};
}
Exprs convert_reduce_max(NodeContext& context) { return convert_plain(context, "max"); }
Exprs convert_reduce_min(NodeContext& context) { return convert_plain(context, "min"); }
Exprs convert_reduce_prod(NodeContext& context) { return convert_plain(context, "prod"); }

Exprs convert_reduce_mean(NodeContext& context) {
  const Reduction reduction = read_float_reduction(context);
  return {reduced(context, "mean", reduction.data, reduction)};
}

Exprs convert_reduce_l1(NodeContext& context) {
  const Reduction reduction = read_reduction(context, false);
  return {reduced(context, "sum", ops::unary("abs", reduction.data, context.span()), reduction)};
}

Expr squares(NodeContext& context, const Reduction& reduction) {
  return reduced(context, "sum", ops::multiply(reduction.data, reduction.data, context.span()), reduction);
}

Exprs convert_reduce_sum_square(NodeContext& context) { return {squares(context, read_reduction(context, false))}; }

Exprs convert_reduce_l2(NodeContext& context) {
  return {ops::unary("sqrt", squares(context, read_float_reduction(context)), context.span())};
}

Exprs convert_reduce_log_sum(NodeContext& context) {
  const Reduction reduction = read_float_reduction(context);
  return {ops::unary("log", reduced(context, "sum", reduction.data, reduction), context.span())};
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
    return ops::clip(ops::reduce("max", reduction.data, reduction.axes, keepdims, false, span), -limit, limit, span);
  };
  const Expr powers = ops::unary("exp", ops::subtract(reduction.data, greatest(true), span), span);
  return {ops::add(ops::unary("log", reduced(context, "sum", powers, reduction), span), greatest(reduction.keepdims),
                   span)};
}

// ONNX ArgMax, ArgMin (1, 11, 12, 13).
Exprs convert_arg(NodeContext& context, std::string_view op) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_number, "numbers");
  const int64_t axis = context.int_attr("axis", 0);
  const bool keepdims = context.flag_attr("keepdims", true), last = context.flag_attr("select_last_index", false);
  return {ops::arg_reduce(op, x, Shape{axis}, keepdims, last, context.span())};
}
Exprs convert_arg_max(NodeContext& context) { return convert_arg(context, "argmax"); }
Exprs convert_arg_min(NodeContext& context) { return convert_arg(context, "argmin"); }

}  // namespace

std::span<const OpRow> reduce_rows() {
  static constexpr OpRow kRows[] = {
      {"ReduceSum", convert_reduce_sum, 1, 2},
      {"ReduceMean", convert_reduce_mean, 1, 1},
      {"ReduceMax", convert_reduce_max, 1, 1},
      {"ReduceMin", convert_reduce_min, 1, 1},
      {"ReduceProd", convert_reduce_prod, 1, 1},
      {"ReduceL1", convert_reduce_l1, 1, 1},
      {"ReduceL2", convert_reduce_l2, 1, 1},
      {"ReduceSumSquare", convert_reduce_sum_square, 1, 1},
      {"ReduceLogSum", convert_reduce_log_sum, 1, 1},
      {"ReduceLogSumExp", convert_reduce_log_sum_exp, 1, 1},
      {"ArgMax", convert_arg_max, 1, 1},
      {"ArgMin", convert_arg_min, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
