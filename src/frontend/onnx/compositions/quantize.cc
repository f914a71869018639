// Operators of quantized models that compute on integers: sums of products in int32, and one multiplication in float32
// that gives the scale of the result. The product of scales is rounded before it multiplies, and halves are rounded to
// even, which qnn.requantize does not do.
#include "frontend/onnx/compositions/quantize.h"

#include "arith/canonical.h"
#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/conv.h"
#include "frontend/onnx/parts/matmul.h"
#include "frontend/onnx/parts/quantization.h"
#include "ops/loops/dims.h"
#include "ops/qnn/quantize.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

Expr rounded_quotient(NodeContext& context, const Expr& data, const Expr& scale, DataType precision) {
  const Expr quotient = ops::divide(context.cast(data, precision), context.cast(scale, precision), context.span());
  return context.cast(quotient, kScale);
}

namespace {

// The axis of a matrix that has a scale for each row; none (as along_data() takes it) of a vector.
size_t row_axis(NodeContext& context, const Expr& x) { return context.rank(x) < 2 ? kNoAxis : context.rank(x) - 2; }
size_t column_axis(NodeContext& context, const Expr& x) { return context.rank(x) < 2 ? kNoAxis : context.rank(x) - 1; }

// Returns the integers of input `i` as int32, less their zero point.
Expr less_zero_point(NodeContext& context, size_t i, size_t zero_at, std::string_view name, size_t axis) {
  const Expr data = context.input(i);
  context.check_dtype(data, "data", is_byte, "int8 or uint8");
  const Expr wide = context.cast(data, kSum);
  if (!context.has(zero_at)) return wide;
  const Expr zero = read_zero_point(context, zero_at, name, context.dtype(data));
  return ops::subtract(wide, along_data(context, zero, data, axis, name), context.span());
}

// Returns whether a zero point is one number, or `size` numbers.
bool is_one_or_each(NodeContext& context, const Expr& zero_point, const PrimExpr& size) {
  const std::vector<PrimExpr> dims = context.dims(zero_point);
  return dims.empty() || (dims.size() == 1 && arith::is_equal(dims[0], size));
}

// Two inputs of integers, with their zero points.
struct IntegerOperands {
  Expr data, weight, data_zero = {}, weight_zero = {};
};

IntegerOperands read_operands(NodeContext& context, size_t weight, size_t data_zero, size_t weight_zero,
                              std::string_view data_name, std::string_view weight_name) {
  IntegerOperands operands{.data = context.input(0), .weight = context.input(weight)};
  for (const Expr& x : {operands.data, operands.weight}) context.check_dtype(x, "data", is_byte, "int8 or uint8");
  operands.data_zero = read_zero_point(context, data_zero, data_name, context.dtype(operands.data));
  operands.weight_zero = read_zero_point(context, weight_zero, weight_name, context.dtype(operands.weight));
  return operands;
}

}  // namespace

Expr integer_convolution(NodeContext& context, size_t weight, size_t x_zero, size_t w_zero) {
  const IntegerOperands x = read_operands(context, weight, x_zero, w_zero, "x_zero_point", "w_zero_point");
  const bool is_image = context.rank(x.data) == 4 && context.rank(x.weight) == 4;
  const bool is_one = is_image && context.rank(x.data_zero) == 0;
  if (is_one && is_one_or_each(context, x.weight_zero, context.dims(x.weight)[0])) {
    const Expr one = context.scalar(1, kScale);
    return quantized_convolution(context, {x.data, x.weight, x.data_zero, x.weight_zero, one, one});
  }
  return convolution(context, less_zero_point(context, 0, x_zero, "x_zero_point", kNoAxis),
                     less_zero_point(context, weight, w_zero, "w_zero_point", 0));
}

Expr integer_product(NodeContext& context, size_t b, size_t a_zero, size_t b_zero) {
  const IntegerOperands x = read_operands(context, b, a_zero, b_zero, "a_zero_point", "b_zero_point");
  const bool are_matrices = context.rank(x.data) == 2 && context.rank(x.weight) == 2;
  const bool is_one = are_matrices && context.rank(x.data_zero) == 0;
  if (is_one && is_one_or_each(context, x.weight_zero, context.dims(x.weight)[1]))
    return quantized_product(context, x.data, x.weight, x.data_zero, x.weight_zero);
  return multiply(context, less_zero_point(context, 0, a_zero, "a_zero_point", row_axis(context, x.data)),
                  less_zero_point(context, b, b_zero, "b_zero_point", column_axis(context, x.weight)));
}

namespace {

// ONNX DynamicQuantizeLinear (11): to uint8, with the scale at which 0 and all of x are in range. Where x is 0
// throughout, the scale is 1, as onnxruntime has it: the standard's would be 0.
Exprs convert_dynamic_quantize(NodeContext& context) {
  const Span& span = context.span();
  const Expr x = context.input(0), zero = context.scalar(0, kScale);
  if (context.dtype(x) != kScale) context.invalid("its data has dtype {}, expected float32", context.dtype(x));
  const DataType out = DataType::uint(8);
  const Expr most = ops::binary("maximum", ops::reduce("max", x, std::nullopt, false, false, span), zero, span);
  const Expr least = ops::binary("minimum", ops::reduce("min", x, std::nullopt, false, false, span), zero, span);
  const Expr range = ops::subtract(most, least, span);
  const Expr is_zero = ops::binary("equal", range, zero, span);
  const Expr scale =
      ops::where(is_zero, context.scalar(1, kScale), ops::divide(range, context.scalar(255, kScale), span), span);
  const Expr offset = ops::subtract(zero, least, span), none = context.scalar(0, kSum);
  const Expr zero_point = ops::quantize(offset, scale, none, out, 0, span);
  return {ops::quantize(x, scale, ops::cast(zero_point, kSum, span), out, 0, span), scale, zero_point};
}

// Rounds sums * (scale_a * scale_b / scale_y) to the dtype of the zero point at input `zero_at`.
Exprs requantized(NodeContext& context, const Expr& sums, const Expr& scale_a, const Expr& scale_b, size_t scale_at) {
  const Span& span = context.span();
  const Expr scale = read_scale(context, scale_at, "y_scale");
  const DataType out = context.dtype(context.input(scale_at + 1));
  if (!is_byte(out)) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "a result of {} is not supported", out);
  const Expr zero = read_zero_point(context, scale_at + 1, "y_zero_point", out);
  if (context.rank(scale) != 0 || context.rank(zero) != 0)
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED,
                   "a y_scale or y_zero_point of more than one number is not supported");
  const Expr factor = ops::divide(ops::multiply(scale_a, scale_b, span), scale, span);
  const Expr scaled = ops::multiply(context.cast(sums, kScale), factor, span);
  return {ops::quantize(scaled, context.scalar(1, kScale), zero, out, 0, span)};
}

// Reads a scale of rows or columns; over the axis that is summed, `summed` from the end, it is the same.
Expr outer_scale(NodeContext& context, size_t i, const Expr& of, size_t axis, size_t summed, std::string_view name) {
  const Expr scale = along_data(context, read_scale(context, i, name), of, axis, name);
  const std::vector<PrimExpr> dims = context.dims(scale);
  if (dims.size() >= 2 && !is_int(dims[dims.size() - summed], 1))
    context.invalid("its {} has the shape {}, which differs along the axis that is summed", name,
                    ops::show_dims(Array<PrimExpr>(dims)));
  return scale;
}

// ONNX QLinearMatMul (10, 21): a, its scale and zero point; b, its two; the two of the result.
Exprs convert_qlinear_matmul(NodeContext& context) {
  const Expr a = context.input(0), b = context.input(3);
  const Expr a_scale = outer_scale(context, 1, a, row_axis(context, a), 1, "a_scale");
  const Expr b_scale = outer_scale(context, 4, b, column_axis(context, b), 2, "b_scale");
  const Expr sums = integer_product(context, 3, 2, 5);
  return requantized(context, sums, a_scale, b_scale, 6);
}

// ONNX QLinearConv (10): x, its scale and zero point; w, its two, of one number or of one for each output channel; the
// two of the result; an optional bias in int32, whose step is x_scale * w_scale.
Exprs convert_qlinear_conv(NodeContext& context) {
  Expr sums = integer_convolution(context, 3, 2, 5);
  const Expr x_scale = read_scale(context, 1, "x_scale"), w_scale = read_scale(context, 4, "w_scale");
  if (context.rank(x_scale) != 0) context.invalid("its x_scale has more than one number");
  if (context.rank(w_scale) > 1) context.invalid("its w_scale has {} dimensions", context.rank(w_scale));
  // The channels are the result's axis 1, where they were the weight's axis 0.
  const Expr by_weight = along_data(context, w_scale, context.input(3), 0, "w_scale");
  const Expr by_channel = context.rank(w_scale) == 0 ? w_scale : ops::squeeze(by_weight, Shape{-1}, context.span());
  if (context.has(8)) {
    const Expr bias = context.input(8);
    if (context.dtype(bias) != kSum) context.invalid("its bias has dtype {}, expected int32", context.dtype(bias));
    sums = ops::bias_add(sums, bias, 1, context.span());
  }
  return requantized(context, sums, x_scale, by_channel, 6);
}

}  // namespace

std::span<const OpRow> composed_quantize_rows() {
  static constexpr OpRow kRows[] = {
      {"DynamicQuantizeLinear", convert_dynamic_quantize, 1, 1, 11},
      {"QLinearMatMul", convert_qlinear_matmul, 8, 8, 10},
      {"QLinearConv", convert_qlinear_conv, 8, 9, 10},
  };
  return kRows;
}

}  // namespace headrace::onnx
