#include "frontend/onnx/compositions/narrow.h"

#include "ops/tensor/broadcast.h"
#include "tensor/narrow_float.h"

namespace headrace::onnx {

namespace {

Expr scalar_of_code(DataType dtype, uint8_t code) {
  const NDArray scalar = NDArray::zeros({}, dtype);
  *scalar.data<uint8_t>() = code;
  return relay::make_constant(scalar);
}

// Returns the cast of `x`, with the special codes in place of numbers that round to more than the greatest one.
Expr cast_without_saturation(NodeContext& context, const Expr& x, DataType dtype) {
  const NarrowFloat row = narrow_float(dtype);
  const double greatest = static_cast<double>(narrow_to_float(row.greatest, dtype));
  const double below = static_cast<double>(narrow_to_float(static_cast<uint8_t>(row.greatest - 1), dtype));
  // Halfway to the next number, which would be even if the greatest one is odd.
  const double limit = greatest + (greatest - below) / 2;
  const bool is_odd = row.greatest % 2 != 0;
  const Expr data = context.dtype(x).is_float() ? x : context.cast(x, DataType::float_(32));
  const auto passes = [&](const char* order, double bound) {
    return ops::binary(order, data, context.scalar(bound, context.dtype(data)), context.span());
  };
  const uint8_t special = row.infinity != 0 ? row.infinity : row.nan;
  const Expr above = passes(is_odd ? "greater_equal" : "greater", limit);
  const Expr under = passes(is_odd ? "less_equal" : "less", -limit);
  const Expr negative = scalar_of_code(dtype, static_cast<uint8_t>(special | row.sign));
  const Expr kept = ops::where(under, negative, context.cast(data, dtype), context.span());
  return ops::where(above, scalar_of_code(dtype, special), kept, context.span());
}

}  // namespace

Expr cast_as_onnx(NodeContext& context, const Expr& x, DataType dtype, bool saturate) {
  const DataType from = context.dtype(x);
  if (from == dtype) return x;
  if (dtype.is_narrow_float() && !saturate && narrow_float(dtype).has_nan())
    return cast_without_saturation(context, x, dtype);
  const bool is_real = from.is_float() || from.is_narrow_float();
  return context.cast(is_real && dtype.is_narrow_int() ? context.cast(x, DataType::int_(32)) : x, dtype);
}

}  // namespace headrace::onnx
