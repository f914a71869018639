#include "frontend/onnx/parts/reduction.h"
#include "frontend/onnx/single/rows.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

namespace {

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
      {"ReduceSum", convert_reduce_sum, 1, 2},   {"ReduceMean", convert_reduce_mean, 1, 2},
      {"ReduceMax", convert_reduce_max, 1, 2},   {"ReduceMin", convert_reduce_min, 1, 2},
      {"ReduceProd", convert_reduce_prod, 1, 2}, {"ArgMax", convert_arg_max, 1, 1},
      {"ArgMin", convert_arg_min, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
