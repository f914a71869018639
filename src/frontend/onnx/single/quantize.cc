// QuantizeLinear, DequantizeLinear, MatMulInteger and ConvInteger.
#include <algorithm>

#include "frontend/onnx/compositions/narrow.h"
#include "frontend/onnx/compositions/quantize.h"
#include "frontend/onnx/parts/quantization.h"
#include "frontend/onnx/single/rows.h"
#include "ops/loops/dims.h"
#include "ops/qnn/quantize.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

bool is_quantized_type(DataType dtype) {
  return ((dtype.is_int() || dtype.is_uint()) && dtype.bits() <= 16) || dtype.is_narrow_float();
}
// int32, which has no zero point, stands for the sums of integer products.
bool is_dequantized_type(DataType dtype) { return is_quantized_type(dtype) || dtype == kSum; }
bool is_float_or_sum(DataType dtype) { return dtype.is_float() || dtype == kSum; }

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

// Returns a scale or zero point of checked() so that it broadcasts to the data.
Expr along(NodeContext& context, const Expr& x, const Steps& steps, std::string_view name) {
  return along_data(context, x, steps.data, static_cast<size_t>(steps.axis), name);
}

// Returns data / scale + zero point as a narrow float, whose zero point is 0 in all but odd models.
Expr as_narrow_float(NodeContext& context, const Steps& steps, DataType precision, DataType out, bool saturate) {
  Expr x = rounded_quotient(context, steps.data, along(context, steps.scale, steps, "y_scale"), precision);
  if (context.has(2)) x = ops::add(x, along(context, steps.zero_point, steps, "y_zero_point"), context.span());
  return cast_as_onnx(context, x, out, saturate);
}

// ONNX QuantizeLinear (10, 13, 19, 21, 23). The quotient is of float32; since opset 23 it is of the scale's dtype, or
// of the one that `precision` names.
Exprs convert_quantize(NodeContext& context) {
  const Span& span = context.span();
  const Expr data = context.input(0);
  context.check_dtype(data, "data", is_float_or_sum, "floats or int32");
  const bool saturate = context.flag_attr("saturate", true);  // is for float8
  const DataType out = quantized_dtype(context);
  DataType precision = kScale;
  if (context.opset() >= 23) precision = optional_type(context, "precision").value_or(context.dtype(context.input(1)));
  if (!precision.is_float()) context.invalid("attribute 'precision' is {}, expected a float", precision);
  Steps steps{.data = context.cast(context.cast(data, precision), kScale),
              .scale = read_scale(context, 1, "y_scale"),
              .zero_point = read_zero_point(context, 2, "y_zero_point", out)};
  if (precision.bits() > 32) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "precision {} is not supported", precision);
  steps = checked(context, std::move(steps));
  if (out.is_narrow_float())
    return {in_shape(context, as_narrow_float(context, steps, precision, out, saturate), steps)};
  if (precision == kScale)
    return {in_shape(context, ops::quantize(steps.data, steps.scale, steps.zero_point, out, steps.axis, span), steps)};
  const Expr scale = along(context, steps.scale, steps, "y_scale");
  const Expr quotient = rounded_quotient(context, steps.data, scale, precision);
  return {in_shape(context, ops::quantize(quotient, context.scalar(1, kScale), steps.zero_point, out, steps.axis, span),
                   steps)};
}

// Returns (data - zero point) * scale of narrow floats.
Expr from_narrow_float(NodeContext& context, const Steps& steps, DataType out) {
  Expr x = context.cast(steps.data, kScale);
  if (context.has(2)) x = ops::subtract(x, along(context, steps.zero_point, steps, "x_zero_point"), context.span());
  return context.cast(ops::multiply(x, along(context, steps.scale, steps, "x_scale"), context.span()), out);
}

// ONNX DequantizeLinear (10, 13, 19, 21, 23): the product is of float32, whatever dtype the result has.
Exprs convert_dequantize(NodeContext& context) {
  const Expr data = context.input(0);
  context.check_dtype(data, "data", is_dequantized_type, "integers of 2 to 16 bits, int32, or floats of 8 or 4 bits");
  const DataType out = optional_type(context, "output_dtype").value_or(context.dtype(context.input(1)));
  if (!out.is_float() || out.bits() > 32)
    context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "a result of {} is not supported", out);
  const Steps steps =
      checked(context, {.data = data,
                        .scale = read_scale(context, 1, "x_scale"),
                        .zero_point = read_zero_point(context, 2, "x_zero_point", context.dtype(data))});
  if (context.dtype(data).is_narrow_float()) return {in_shape(context, from_narrow_float(context, steps, out), steps)};
  return {in_shape(context, ops::dequantize(steps.data, steps.scale, steps.zero_point, out, steps.axis, context.span()),
                   steps)};
}

// ONNX MatMulInteger (10): int8 or uint8 matrices, multiplied in int32.
Exprs convert_matmul_integer(NodeContext& context) { return {integer_product(context, 1, 2, 3)}; }

// ONNX ConvInteger (10): int8 or uint8 data and weights, convolved in int32.
Exprs convert_conv_integer(NodeContext& context) { return {integer_convolution(context, 1, 2, 3)}; }

}  // namespace

std::span<const OpRow> quantize_rows() {
  static constexpr OpRow kRows[] = {
      {"QuantizeLinear", convert_quantize, 2, 3, 10},
      {"DequantizeLinear", convert_dequantize, 2, 3, 10},
      {"MatMulInteger", convert_matmul_integer, 2, 4, 10},
      {"ConvInteger", convert_conv_integer, 2, 4, 10},
  };
  return kRows;
}

}  // namespace headrace::onnx
