#include "frontend/onnx/compositions/narrow.h"
#include "frontend/onnx/compositions/unary.h"
#include "frontend/onnx/single/rows.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"

namespace headrace::onnx {

namespace {

struct Names {
  std::string_view onnx, relay;
};

// Functions of one element that relay has under another name.
constexpr Names kFloatFunctions[] = {
    {"Acos", "acos"},   {"Acosh", "acosh"},     {"Asin", "asin"},   {"Asinh", "asinh"}, {"Atan", "atan"},
    {"Atanh", "atanh"}, {"Cos", "cos"},         {"Cosh", "cosh"},   {"Erf", "erf"},     {"Exp", "exp"},
    {"Log", "log"},     {"Sigmoid", "sigmoid"}, {"Sin", "sin"},     {"Sinh", "sinh"},   {"Sqrt", "sqrt"},
    {"Tan", "tan"},     {"Tanh", "tanh"},       {"IsNaN", "isnan"},
};
constexpr Names kNumberFunctions[] = {
    {"Abs", "abs"}, {"Ceil", "ceil"}, {"Floor", "floor"}, {"Neg", "negative"}, {"Round", "nearbyint"}, {"Sign", "sign"},
};

std::string_view relay_name(std::span<const Names> table, std::string_view onnx) {
  for (const Names& names : table) {
    if (names.onnx == onnx) return names.relay;
  }
  throw InternalError(fmt::format("the ONNX operator {} is in no table", onnx));
}

Exprs convert_float_function(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  return {ops::unary(relay_name(kFloatFunctions, context.node().op_type), context.input(0), context.span())};
}

Exprs convert_number_function(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_number, "numbers");
  return {ops::unary(relay_name(kNumberFunctions, context.node().op_type), context.input(0), context.span())};
}

Exprs convert_not(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_bool, "bool");
  return {ops::unary("logical_not", context.input(0), context.span())};
}

// ONNX BitwiseNot (18).
Exprs convert_bitwise_not(NodeContext& context) {
  const auto is_whole = [](DataType dtype) { return !dtype.is_float() && !dtype.is_bool(); };
  context.check_dtype(context.input(0), "data", is_whole, "integers");
  return {ops::unary("bitwise_not", context.input(0), context.span())};
}

// ONNX Reciprocal (6, 13).
Exprs convert_reciprocal(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  return {ops::divide(context.scalar(1, context.dtype(x)), x, context.span())};
}

// ONNX IsInf (10).
Exprs convert_is_inf(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const bool negative = context.flag_attr("detect_negative", true),
             positive = context.flag_attr("detect_positive", true);
  if (negative != positive) return {infinite_of_sign(context, x, negative)};
  const Expr infinite = ops::unary("isinf", x, context.span());
  return {negative ? infinite : ops::unary("zeros_like", infinite, context.span())};
}

Exprs convert_identity(NodeContext& context) { return {context.input(0)}; }

// ONNX Cast (6, 9, 13, 19, 21, 23, 24, 25). What `saturate` says is of 8-bit floats. round_mode is for float8_e8m0fnu,
// which is refused.
Exprs convert_cast(NodeContext& context) {
  context.ignore_attrs({"round_mode"});
  const bool saturate = context.opset() < 19 || context.flag_attr("saturate", true);
  context.int_attr("to");  // it must be there
  const ElementType to = context.element_type_attr("to", ElementType::kUndefined);
  const auto dtype = find_dtype(to);
  if (!dtype) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "a cast to {} is not supported", element_type_name(to));
  return {cast_as_onnx(context, context.input(0), *dtype, saturate)};
}

// ONNX CastLike (15, 19, 21, 23, 24, 25).
Exprs convert_cast_like(NodeContext& context) {
  context.ignore_attrs({"round_mode"});
  const bool saturate = context.opset() < 19 || context.flag_attr("saturate", true);
  return {cast_as_onnx(context, context.input(0), context.dtype(context.input(1)), saturate)};
}

}  // namespace

std::span<const OpRow> unary_rows() {
  static constexpr OpRow kRows[] = {
      {"Acos", convert_float_function, 1, 1, 7},
      {"Acosh", convert_float_function, 1, 1, 9},
      {"Asin", convert_float_function, 1, 1, 7},
      {"Asinh", convert_float_function, 1, 1, 9},
      {"Atan", convert_float_function, 1, 1, 7},
      {"Atanh", convert_float_function, 1, 1, 9},
      {"Cos", convert_float_function, 1, 1, 7},
      {"Cosh", convert_float_function, 1, 1, 9},
      {"Erf", convert_float_function, 1, 1, 9},
      {"Exp", convert_float_function, 1, 1},
      {"Log", convert_float_function, 1, 1},
      {"Sigmoid", convert_float_function, 1, 1},
      {"Sin", convert_float_function, 1, 1, 7},
      {"Sinh", convert_float_function, 1, 1, 9},
      {"Sqrt", convert_float_function, 1, 1},
      {"Tan", convert_float_function, 1, 1, 7},
      {"Tanh", convert_float_function, 1, 1},
      {"IsNaN", convert_float_function, 1, 1, 9},
      {"Abs", convert_number_function, 1, 1},
      {"Ceil", convert_number_function, 1, 1},
      {"Floor", convert_number_function, 1, 1},
      {"Neg", convert_number_function, 1, 1},
      {"Round", convert_number_function, 1, 1, 11},
      {"Sign", convert_number_function, 1, 1, 9},
      {"Not", convert_not, 1, 1},
      {"BitwiseNot", convert_bitwise_not, 1, 1, 18},
      {"Reciprocal", convert_reciprocal, 1, 1},
      {"IsInf", convert_is_inf, 1, 1, 10},
      {"Identity", convert_identity, 1, 1},
      {"Cast", convert_cast, 1, 1},
      {"CastLike", convert_cast_like, 2, 2, 15},
  };
  return kRows;
}

}  // namespace headrace::onnx
