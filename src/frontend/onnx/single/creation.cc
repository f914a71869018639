// Operators that make tensors from attributes or shapes.
#include <cmath>
#include <numbers>

#include "frontend/onnx/single/rows.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

template <typename T>
Expr list_constant(NodeContext& context, DataType dtype, const std::vector<T>& values) {
  return relay::make_constant(NDArray::from_vector(Shape{static_cast<int64_t>(values.size())}, dtype, values),
                              context.span());
}

// ONNX Constant (1, 9, 11, 12, 13): one of several attributes gives the value.
Exprs convert_constant(NodeContext& context) {
  if (context.node().attributes.size() != 1)
    context.invalid("it has {} attributes; one gives its value", context.node().attributes.size());
  if (!context.has_attr(context.node().attributes[0].name))
    context.invalid("its value is an attribute of the function that the call does not give");
  if (const NDArray value = context.tensor_attr("value")) return {relay::make_constant(value, context.span())};
  if (context.has_attr("value_float"))
    return {context.scalar(context.float_attr("value_float", 0), DataType::float_(32))};
  if (context.has_attr("value_int")) return {context.int_constant({}, {context.int_attr("value_int", 0)})};
  if (const auto values = context.floats_attr("value_floats"))
    return {list_constant(context, DataType::float_(32), *values)};
  if (const auto values = context.ints_attr("value_ints")) return {list_constant(context, DataType::int_(64), *values)};
  context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "strings and sparse tensors are not supported");
}

// ONNX ConstantOfShape (9).
Exprs convert_constant_of_shape(NodeContext& context) {
  NDArray value = context.tensor_attr("value");
  if (!value) value = NDArray::zeros({1}, DataType::float_(32));
  if (value.num_elements() != 1) context.invalid("attribute 'value' has {} elements, expected 1", value.num_elements());
  const Expr fill = relay::make_constant(value.reshaped({}), context.span());
  const auto sizes = context.facts().values(context.input(0));
  if (sizes && !as_shape(Array<PrimExpr>(*sizes)))
    return {ops::full(fill, context.input(0), value.dtype(), context.span())};
  const Shape shape = context.ints(0, "input");
  for (const int64_t size : shape) {
    if (size < 0) context.invalid("its shape has the size {}", size);
  }
  return {ops::full(fill, shape, value.dtype(), context.span())};
}

// ONNX Range (11): start, start + delta, ... before limit.
Exprs convert_range(NodeContext& context) {
  const Expr start = context.input(0), stop = context.input(1), step = context.input(2);
  const auto limit = context.facts().values(stop);
  const bool counts = limit && limit->size() == 1 && !as_int((*limit)[0]) && !is_any((*limit)[0]);
  Exprs scalars;
  for (size_t i = 0; i < 3; ++i) {
    const bool may_be_symbolic = i == 1 && counts;
    const Expr x = context.input(i);
    if (may_be_symbolic) {
      scalars.push_back(context.rank(x) == 0 ? x : ops::reshape(x, Shape{}, true, context.span()));
    } else {
      constexpr std::string_view kNames[] = {"start", "limit", "delta"};
      context.number(i, kNames[i]);
      scalars.push_back(relay::make_constant(context.constant(i, kNames[i]).reshaped({}), context.span()));
    }
  }
  return {ops::arange(scalars[0], scalars[1], scalars[2], context.dtype(start), context.span())};
}

// ONNX EyeLike (9).
Exprs convert_eye_like(NodeContext& context) {
  const Shape shape = context.known_shape(context.input(0));
  if (shape.size() != 2) context.invalid("its input has {} dimensions, expected 2", shape.size());
  const auto declared = find_dtype(context.element_type_attr("dtype", ElementType::kUndefined));
  if (context.has_attr("dtype") && !declared) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "its dtype is not supported");
  const int64_t k = context.int_attr("k", 0);
  context.check_table_size(shape[0] * shape[1]);
  const NDArray eye = NDArray::zeros(shape, declared.value_or(context.dtype(context.input(0))));
  for (int64_t row = 0; row < shape[0]; ++row) {
    // Compared as differences, since k may be any integer.
    if (k >= -row && k < shape[1] - row) set_element(eye.tensor(), row * shape[1] + row + k, 1);
  }
  return {relay::make_constant(eye, context.span())};
}

// A window function of ONNX 17: a0 - a1 cos(t) + a2 cos(2t), t going round once.
Exprs convert_window(NodeContext& context, double a0, double a1, double a2) {
  const ElementType type = context.element_type_attr("output_datatype", ElementType::kFloat);
  const auto dtype = find_dtype(type);
  if (!dtype || !dtype->is_float())
    context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "a window of {} is not supported", element_type_name(type));
  const double number = context.number(0, "size");
  if (!(number >= 0 && number <= 0x1p31)) context.invalid("its size is {}", number);
  const auto size = static_cast<int64_t>(number);
  context.check_table_size(size);
  const bool periodic = context.flag_attr("periodic", true);
  const NDArray window = NDArray::empty({size}, *dtype);
  const double round = static_cast<double>(periodic ? size : size - 1);
  for (int64_t i = 0; i < size; ++i) {
    const double t = 2 * std::numbers::pi * static_cast<double>(i) / std::max(round, 1.0);
    set_element(window.tensor(), i, a0 - a1 * std::cos(t) + a2 * std::cos(2 * t));
  }
  return {relay::make_constant(window, context.span())};
}

Exprs convert_hann(NodeContext& context) { return convert_window(context, 0.5, 0.5, 0); }
Exprs convert_hamming(NodeContext& context) { return convert_window(context, 25.0 / 46, 1 - 25.0 / 46, 0); }
Exprs convert_blackman(NodeContext& context) { return convert_window(context, 0.42, 0.5, 0.08); }

}  // namespace

std::span<const OpRow> creation_rows() {
  static constexpr OpRow kRows[] = {
      {"Constant", convert_constant, 0, 0},
      {"ConstantOfShape", convert_constant_of_shape, 1, 1, 9},
      {"Range", convert_range, 3, 3, 11},
      {"EyeLike", convert_eye_like, 1, 1, 9},
      {"HannWindow", convert_hann, 1, 1, 17},
      {"HammingWindow", convert_hamming, 1, 1, 17},
      {"BlackmanWindow", convert_blackman, 1, 1, 17},
  };
  return kRows;
}

}  // namespace headrace::onnx
