// The operators of quantized models. Integers are summed in int32, after their zero points are taken off; one
// multiplication in float32 gives the scale of the result.
#include "frontend/onnx/conv.h"
#include "frontend/onnx/matmul.h"
#include "frontend/onnx/op_table.h"
#include "frontend/onnx/windows.h"
#include "ops/loops/dims.h"
#include "ops/qnn/quantize.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

constexpr DataType kSum = DataType::int_(32), kScale = DataType::float_(32);
constexpr size_t kNoAxis = SIZE_MAX;  // only a scalar, or a tensor of the same rank, fits

bool is_byte(DataType dtype) { return (dtype.is_int() || dtype.is_uint()) && dtype.bits() == 8; }
bool is_quantized_type(DataType dtype) { return (dtype.is_int() || dtype.is_uint()) && dtype.bits() <= 16; }
// int32, which has no zero point, stands for the sums of integer products.
bool is_dequantized_type(DataType dtype) { return is_quantized_type(dtype) || dtype == kSum; }
bool is_float_or_sum(DataType dtype) { return dtype.is_float() || dtype == kSum; }

bool has_one_element(NodeContext& context, const Expr& x) {
  const std::vector<PrimExpr> dims = context.dims(x);
  return std::all_of(dims.begin(), dims.end(), [](const PrimExpr& dim) { return is_int(dim, 1); });
}

// Returns x, or a scalar where it has one element.
Expr scalar_if_one(NodeContext& context, const Expr& x) {
  return context.rank(x) > 0 && has_one_element(context, x) ? context.reshape(x, Shape{}) : x;
}

Expr read_scale(NodeContext& context, size_t i, std::string_view name) {
  const Expr scale = context.input(i);
  if (!context.dtype(scale).is_float())
    context.invalid("its {} has dtype {}, expected a float", name, context.dtype(scale));
  return scalar_if_one(context, context.cast(scale, kScale));
}

// Returns the zero point at input `i`, of the dtype of the integers it belongs to, as int32; 0 where it is omitted.
Expr read_zero_point(NodeContext& context, size_t i, std::string_view name, DataType of) {
  if (!context.has(i)) return context.scalar(0, kSum);
  const Expr zero = context.input(i);
  if (context.dtype(zero) != of)
    context.invalid("its {} has dtype {}, but it belongs to {}", name, context.dtype(zero), of);
  return scalar_if_one(context, context.cast(zero, kSum));
}

// Returns `x`, a scale or zero point, so that it broadcasts to `data`: a scalar, one number for each index of an axis,
// or a tensor of data's rank. Throws Refused for another shape.
Expr along(NodeContext& context, const Expr& x, const Expr& data, size_t axis, std::string_view name) {
  const std::vector<PrimExpr> own = context.dims(x), all = context.dims(data);
  if (own.empty()) return x;
  const auto fits = [&](const PrimExpr& dim, size_t i) {
    return is_int(dim, 1) || ops::unify_dims(dim, all[i]).has_value();
  };
  bool is_fit = axis < all.size() && (own.size() == all.size() || own.size() == 1);
  if (is_fit && own.size() == 1) is_fit = ops::unify_dims(own[0], all[axis]).has_value();
  for (size_t i = 0; is_fit && own.size() > 1 && i < own.size(); ++i) is_fit = fits(own[i], i);
  if (!is_fit)
    context.invalid("its {} has the shape {}, which does not fit {}", name, ops::show_dims(Array<PrimExpr>(own)),
                    ops::show_dims(Array<PrimExpr>(all)));
  if (own.size() > 1 || axis + 1 == all.size()) return x;
  return ops::expand_dims(x, 1, static_cast<int64_t>(all.size() - axis - 1), context.span());
}

// The axis of a matrix that has a scale for each row; none (as along() takes it) of a vector.
size_t row_axis(NodeContext& context, const Expr& x) { return context.rank(x) < 2 ? kNoAxis : context.rank(x) - 2; }
size_t column_axis(NodeContext& context, const Expr& x) { return context.rank(x) < 2 ? kNoAxis : context.rank(x) - 1; }

// Returns the integers of input `i` as int32, less their zero point.
Expr less_zero_point(NodeContext& context, size_t i, size_t zero_at, std::string_view name, size_t axis) {
  const Expr data = context.input(i);
  context.check_dtype(data, "data", is_byte, "int8 or uint8");
  const Expr wide = context.cast(data, kSum);
  if (!context.has(zero_at)) return wide;
  const Expr zero = read_zero_point(context, zero_at, name, context.dtype(data));
  return ops::subtract(wide, along(context, zero, data, axis, name), context.span());
}

// --- QuantizeLinear, DequantizeLinear ---

// The values that a node quantizes with: `data` may be flat, its scale and zero point being of one number for each
// element.
struct Steps {
  Expr data, scale, zero_point;
  int64_t axis = 0;
  std::optional<Shape> shape = {};  // shape of the result, where `data` is flat
};

// Repeats a scale or zero point of blocks for each element, and flattens it.
Expr per_element(NodeContext& context, const Expr& blocks, const Shape& shape, size_t axis, int64_t block_size) {
  const int64_t own = static_cast<int64_t>(axis), size = shape[axis];
  Expr each = ops::repeat(blocks, std::clamp<int64_t>(size, 1, block_size), own, context.span());
  if (context.known_dim(each, axis) != size)
    each = ops::strided_slice(each, Shape{0}, Shape{size}, Shape{1}, Shape{own}, "end", context.span());
  return context.reshape(each, Shape{-1});
}

Steps in_blocks(NodeContext& context, Steps steps, size_t axis, int64_t block_size) {
  if (block_size < 0) context.invalid("attribute 'block_size' is {}", block_size);
  const Shape shape = context.known_shape(steps.data);
  Shape wanted = shape;
  wanted[axis] = shape[axis] / block_size + (shape[axis] % block_size != 0 ? 1 : 0);
  if (context.known_shape(steps.scale) != wanted)
    context.invalid("its scale has the shape [{}], expected [{}] for blocks of {}",
                    fmt::join(context.known_shape(steps.scale), ", "), fmt::join(wanted, ", "), block_size);
  steps.scale = per_element(context, steps.scale, shape, axis, block_size);
  if (context.rank(steps.zero_point) > 0)
    steps.zero_point = per_element(context, steps.zero_point, shape, axis, block_size);
  steps.data = context.reshape(steps.data, Shape{-1});
  steps.axis = 0;
  steps.shape = shape;
  return steps;
}

// Checks the shapes of scale and zero point against the data, and reads the attributes axis and block_size.
Steps checked(NodeContext& context, Steps steps) {
  const int64_t axis = context.int_attr("axis", 1);
  const int64_t block_size = context.int_attr("block_size", 0);
  const std::vector<PrimExpr> scale = context.dims(steps.scale), zero = context.dims(steps.zero_point);
  const auto is_same = [](const PrimExpr& a, const PrimExpr& b) { return to_string(a) == to_string(b); };
  if (context.has(2) && !std::equal(scale.begin(), scale.end(), zero.begin(), zero.end(), is_same))
    context.invalid("its zero point has the shape {}, but its scale {}", ops::show_dims(Array<PrimExpr>(zero)),
                    ops::show_dims(Array<PrimExpr>(scale)));
  if (scale.empty()) return steps;
  const size_t rank = context.rank(steps.data), own = context.axis_of(axis, rank);
  if (block_size != 0) return in_blocks(context, std::move(steps), own, block_size);
  const PrimExpr wanted = context.dims(steps.data)[own];
  if (scale.size() != 1 || (as_int(wanted) && as_int(scale[0]) && !is_same(wanted, scale[0])))
    context.invalid("its scale has the shape {}, expected one number, or {} for axis {}",
                    ops::show_dims(Array<PrimExpr>(scale)), to_string(wanted), axis);
  steps.axis = static_cast<int64_t>(own);
  return steps;
}

Expr in_shape(NodeContext& context, const Expr& result, const Steps& steps) {
  return steps.shape ? context.reshape(result, *steps.shape) : result;
}

// The element type of an attribute that defaults to 0, "not given"; nullopt then.
std::optional<DataType> optional_type(NodeContext& context, std::string_view name) {
  const ElementType type = context.element_type_attr(name, ElementType::kUndefined);
  if (type == ElementType::kUndefined) return std::nullopt;
  const auto dtype = find_dtype(type);
  if (!dtype) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "{} {} is not supported", name, element_type_name(type));
  return dtype;
}

// The dtype of QuantizeLinear's result: the zero point's, that of the attribute, or uint8.
DataType quantized_dtype(NodeContext& context) {
  const auto asked = optional_type(context, "output_dtype");
  const DataType dtype = context.has(2) ? context.dtype(context.input(2)) : asked.value_or(DataType::uint(8));
  if (asked && *asked != dtype)
    context.invalid("attribute 'output_dtype' is {}, but its y_zero_point has dtype {}", *asked, dtype);
  if (!is_quantized_type(dtype))
    context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "quantization to {} is not supported", dtype);
  return dtype;
}

// ONNX QuantizeLinear (10, 13, 19, 21, 23). The quotient is of float32; since opset 23 it is of the scale's dtype, or
// of the one that `precision` names.
Exprs convert_quantize(NodeContext& context) {
  const Span& span = context.span();
  const Expr data = context.input(0);
  context.check_dtype(data, "data", is_float_or_sum, "floats or int32");
  context.flag_attr("saturate", true);  // is for float8
  const DataType out = quantized_dtype(context);
  DataType precision = kScale;
  if (context.opset() >= 23) precision = optional_type(context, "precision").value_or(context.dtype(context.input(1)));
  if (!precision.is_float()) context.invalid("attribute 'precision' is {}, expected a float", precision);
  Steps steps{.data = context.cast(context.cast(data, precision), kScale),
              .scale = read_scale(context, 1, "y_scale"),
              .zero_point = read_zero_point(context, 2, "y_zero_point", out)};
  if (precision.bits() > 32) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "precision {} is not supported", precision);
  steps = checked(context, std::move(steps));
  if (precision == kScale)
    return {in_shape(context, ops::quantize(steps.data, steps.scale, steps.zero_point, out, steps.axis, span), steps)};
  const Expr scale = along(context, steps.scale, steps.data, static_cast<size_t>(steps.axis), "y_scale");
  const Expr quotient =
      context.cast(ops::divide(context.cast(steps.data, precision), context.cast(scale, precision), span), kScale);
  return {in_shape(context, ops::quantize(quotient, context.scalar(1, kScale), steps.zero_point, out, steps.axis, span),
                   steps)};
}

// ONNX DequantizeLinear (10, 13, 19, 21, 23): the product is of float32, whatever dtype the result has.
Exprs convert_dequantize(NodeContext& context) {
  const Expr data = context.input(0);
  context.check_dtype(data, "data", is_dequantized_type, "int8, uint8, int16, uint16 or int32");
  const DataType out = optional_type(context, "output_dtype").value_or(context.dtype(context.input(1)));
  if (!out.is_float() || out.bits() > 32)
    context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "a result of {} is not supported", out);
  const Steps steps =
      checked(context, {.data = data,
                        .scale = read_scale(context, 1, "x_scale"),
                        .zero_point = read_zero_point(context, 2, "x_zero_point", context.dtype(data))});
  return {in_shape(context, ops::dequantize(steps.data, steps.scale, steps.zero_point, out, steps.axis, context.span()),
                   steps)};
}

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

// --- products of integers ---

// ONNX MatMulInteger (10): int8 or uint8 matrices, multiplied in int32.
Exprs convert_matmul_integer(NodeContext& context) {
  return {multiply(context, less_zero_point(context, 0, 2, "a_zero_point", row_axis(context, context.input(0))),
                   less_zero_point(context, 1, 3, "b_zero_point", column_axis(context, context.input(1))))};
}

// Convolves the integers of inputs 0 and `weight`; each is followed by its zero point at the given place.
Expr integer_convolution(NodeContext& context, size_t weight, size_t x_zero, size_t w_zero) {
  return convolution(context, less_zero_point(context, 0, x_zero, "x_zero_point", kNoAxis),
                     less_zero_point(context, weight, w_zero, "w_zero_point", 0));
}

// ONNX ConvInteger (10): int8 or uint8 data and weights, convolved in int32. What is padded is the zero point.
Exprs convert_conv_integer(NodeContext& context) { return {integer_convolution(context, 1, 2, 3)}; }

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
  const Expr scale = along(context, read_scale(context, i, name), of, axis, name);
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
  const Expr sums = multiply(context, less_zero_point(context, 0, 2, "a_zero_point", row_axis(context, a)),
                             less_zero_point(context, 3, 5, "b_zero_point", column_axis(context, b)));
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
  const Expr by_weight = along(context, w_scale, context.input(3), 0, "w_scale");
  const Expr by_channel = context.rank(w_scale) == 0 ? w_scale : ops::squeeze(by_weight, Shape{-1}, context.span());
  if (context.has(8)) {
    const Expr bias = context.input(8);
    if (context.dtype(bias) != kSum) context.invalid("its bias has dtype {}, expected int32", context.dtype(bias));
    sums = ops::bias_add(sums, bias, 1, context.span());
  }
  return requantized(context, sums, x_scale, by_channel, 6);
}

}  // namespace

std::span<const OpRow> quantize_rows() {
  static constexpr OpRow kRows[] = {
      {"QuantizeLinear", convert_quantize, 2, 3},
      {"DequantizeLinear", convert_dequantize, 2, 3},
      {"DynamicQuantizeLinear", convert_dynamic_quantize, 1, 1},
      {"MatMulInteger", convert_matmul_integer, 2, 4},
      {"ConvInteger", convert_conv_integer, 2, 4},
      {"QLinearMatMul", convert_qlinear_matmul, 8, 8},
      {"QLinearConv", convert_qlinear_conv, 8, 9},
  };
  return kRows;
}

}  // namespace headrace::onnx
