#include <limits>

#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/reduction.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"

namespace headrace::onnx {

namespace {

// Integers are reduced in float64, as the reference does it.
Reduction read_float_reduction(NodeContext& context) {
  Reduction reduction = read_reduction(context);
  const bool is_float = context.dtype(reduction.data).is_float();
  reduction.data = is_float ? context.widened(reduction.data) : context.cast(reduction.data, DataType::float_(64));
  return reduction;
}

// In the data's dtype again.
Expr as_data(NodeContext& context, const Expr& result) { return context.cast(result, context.dtype(context.input(0))); }

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

}  // namespace

std::span<const OpRow> composed_reduce_rows() {
  static constexpr OpRow kRows[] = {
      {"ReduceL1", convert_reduce_l1, 1, 2},
      {"ReduceL2", convert_reduce_l2, 1, 2},
      {"ReduceSumSquare", convert_reduce_sum_square, 1, 2},
      {"ReduceLogSum", convert_reduce_log_sum, 1, 2},
      {"ReduceLogSumExp", convert_reduce_log_sum_exp, 1, 2},
  };
  return kRows;
}

}  // namespace headrace::onnx
