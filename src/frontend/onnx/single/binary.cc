#include "arith/canonical.h"
#include "frontend/onnx/compositions/fold.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/parts/same_dtype.h"
#include "frontend/onnx/single/rows.h"
#include "ops/loops/dims.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

bool is_unsigned(DataType dtype) { return dtype.is_uint(); }
bool is_whole(DataType dtype) { return !dtype.is_float() && !dtype.is_bool(); }

void check_same_shape(NodeContext& context) {
  const auto a = context.dims(context.input(0)), b = context.dims(context.input(1));
  bool differ = a.size() != b.size();
  for (size_t i = 0; !differ && i < a.size(); ++i) differ = arith::is_unequal(a[i], b[i]);
  if (differ) {
    context.invalid("its inputs have shapes {} and {}; up to opset 6 they broadcast only with attribute broadcast = 1",
                    ops::show_dims(Array<PrimExpr>(a)), ops::show_dims(Array<PrimExpr>(b)));
  }
}

// The second operand. Up to opset 6 it broadcasts only when asked, from attribute `axis` on; its missing trailing axes
// are put in here.
Expr second_operand(NodeContext& context) {
  const Expr b = context.input(1);
  if (context.opset() >= 7) return b;
  const size_t a_rank = context.rank(context.input(0)), b_rank = context.rank(b);
  const bool broadcasts = context.flag_attr("broadcast", false);
  const bool has_axis = context.has_attr("axis");
  const int64_t axis = context.int_attr("axis", -1);
  if (!broadcasts) check_same_shape(context);
  if (!broadcasts || !has_axis || b_rank == 0) return b;
  const size_t begin = context.axis_of(axis, a_rank, "attribute 'axis'");
  if (begin + b_rank > a_rank) context.invalid("its second input does not fit from axis {} on", axis);
  const auto trailing = static_cast<int64_t>(a_rank - begin - b_rank);
  return trailing == 0 ? b : ops::expand_dims(b, static_cast<int64_t>(b_rank), trailing, context.span());
}

Exprs convert_pair(NodeContext& context, std::string_view op, bool (*allowed)(DataType), std::string_view wanted) {
  check_same_dtype(context);
  context.check_dtype(context.input(0), "data", allowed, wanted);
  return {ops::binary(op, context.input(0), second_operand(context), context.span())};
}

Exprs convert_add(NodeContext& context) { return convert_pair(context, "add", is_number, "numbers"); }
Exprs convert_sub(NodeContext& context) { return convert_pair(context, "subtract", is_number, "numbers"); }
Exprs convert_mul(NodeContext& context) { return convert_pair(context, "multiply", is_number, "numbers"); }
Exprs convert_div(NodeContext& context) { return convert_pair(context, "divide", is_number, "numbers"); }
Exprs convert_and(NodeContext& context) { return convert_pair(context, "logical_and", is_bool, "bool"); }
Exprs convert_or(NodeContext& context) { return convert_pair(context, "logical_or", is_bool, "bool"); }
Exprs convert_xor(NodeContext& context) { return convert_pair(context, "logical_xor", is_bool, "bool"); }

bool is_anything(DataType) { return true; }
Exprs convert_equal(NodeContext& context) { return convert_pair(context, "equal", is_anything, ""); }
Exprs convert_greater(NodeContext& context) { return convert_pair(context, "greater", is_number, "numbers"); }
Exprs convert_less(NodeContext& context) { return convert_pair(context, "less", is_number, "numbers"); }
Exprs convert_greater_equal(NodeContext& context) {
  return convert_pair(context, "greater_equal", is_number, "numbers");
}
Exprs convert_less_equal(NodeContext& context) { return convert_pair(context, "less_equal", is_number, "numbers"); }

// ONNX Pow (1, 7, 12, 13, 15). From opset 12 on the exponent may have another dtype; the result has the base's. An
// integer to a float power is computed in float64.
Exprs convert_pow(NodeContext& context) {
  const Expr base = context.input(0), exponent = second_operand(context);
  const Span& span = context.span();
  context.check_dtype(base, "data", is_number, "numbers");
  context.check_dtype(exponent, "an exponent", is_number, "numbers");
  const DataType dtype = context.dtype(base), other = context.dtype(exponent);
  if (dtype == other) return {ops::binary("power", base, exponent, span)};
  if (dtype.is_float() || !other.is_float())
    return {ops::binary("power", base, ops::cast(exponent, dtype, span), span)};
  const DataType wide = DataType::float_(64);
  const Expr power = ops::binary("power", ops::cast(base, wide, span), ops::cast(exponent, wide, span), span);
  return {ops::cast(power, dtype, span)};
}

// ONNX Mod (10, 13): the divisor's sign, or with fmod the dividend's.
Exprs convert_mod(NodeContext& context) {
  const bool fmod = context.flag_attr("fmod", false);
  if (!fmod && context.dtype(context.input(0)).is_float()) context.invalid("attribute 'fmod' must be 1 for floats");
  return convert_pair(context, fmod ? "trunc_mod" : "floor_mod", is_number, "numbers");
}

// ONNX BitShift (11).
Exprs convert_bit_shift(NodeContext& context) {
  const std::string direction = context.string_attr("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    context.invalid("attribute 'direction' is {}, which is neither LEFT nor RIGHT", printable(direction));
  return convert_pair(context, direction == "LEFT" ? "left_shift" : "right_shift", is_unsigned, "unsigned integers");
}

// ONNX BitwiseAnd, BitwiseOr, BitwiseXor (18).
Exprs convert_bitwise_and(NodeContext& context) { return convert_pair(context, "bitwise_and", is_whole, "integers"); }
Exprs convert_bitwise_or(NodeContext& context) { return convert_pair(context, "bitwise_or", is_whole, "integers"); }
Exprs convert_bitwise_xor(NodeContext& context) { return convert_pair(context, "bitwise_xor", is_whole, "integers"); }

// ONNX Sum, Max, Min (6, 8, 12, 13): of any number of tensors, from the left.
Exprs convert_max(NodeContext& context) { return {fold(context, "maximum", false)}; }
Exprs convert_min(NodeContext& context) { return {fold(context, "minimum", false)}; }
Exprs convert_sum(NodeContext& context) {
  // The sum of two is rounded once anyway.
  const Expr sum = fold(context, "add", context.input_count() > 2);
  return {context.cast(sum, context.dtype(context.input(0)))};
}

// ONNX Where (9, 16).
Exprs convert_where(NodeContext& context) {
  context.check_dtype(context.input(0), "a condition", is_bool, "bool");
  return {ops::where(context.input(0), context.input(1), context.input(2), context.span())};
}

}  // namespace

std::span<const OpRow> binary_rows() {
  static constexpr OpRow kRows[] = {
      {"Add", convert_add, 2, 2},
      {"Sub", convert_sub, 2, 2},
      {"Mul", convert_mul, 2, 2},
      {"Div", convert_div, 2, 2},
      {"Pow", convert_pow, 2, 2},
      {"Mod", convert_mod, 2, 2, 10},
      {"And", convert_and, 2, 2},
      {"Or", convert_or, 2, 2},
      {"Xor", convert_xor, 2, 2},
      {"Equal", convert_equal, 2, 2},
      {"Greater", convert_greater, 2, 2},
      {"Less", convert_less, 2, 2},
      {"GreaterOrEqual", convert_greater_equal, 2, 2, 12},
      {"LessOrEqual", convert_less_equal, 2, 2, 12},
      {"BitShift", convert_bit_shift, 2, 2, 11},
      {"BitwiseAnd", convert_bitwise_and, 2, 2, 18},
      {"BitwiseOr", convert_bitwise_or, 2, 2, 18},
      {"BitwiseXor", convert_bitwise_xor, 2, 2, 18},
      {"Max", convert_max, 1, kAny},
      {"Min", convert_min, 1, kAny},
      {"Sum", convert_sum, 1, kAny},
      {"Where", convert_where, 3, 3, 9},
  };
  return kRows;
}

}  // namespace headrace::onnx
