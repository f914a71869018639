// RandomNormal, RandomUniform and their Like forms, and Dropout.
#include "frontend/onnx/compositions/random.h"
#include "frontend/onnx/parts/random.h"
#include "frontend/onnx/single/rows.h"
#include "ops/tensor/elementwise.h"

namespace headrace::onnx {

namespace {

DataType float_dtype_attr(NodeContext& context, DataType otherwise) {
  const DataType dtype = dtype_attr(context, otherwise);
  if (!dtype.is_float())
    context.invalid("its numbers would be {}; attribute 'dtype' names a floating-point type", dtype);
  return dtype;
}

Exprs draw_normal(NodeContext& context, const Shape& shape, DataType otherwise) {
  const double mean = context.float_attr("mean", 0), scale = context.float_attr("scale", 1);
  return {draw(context, "random.normal", mean, scale, shape, float_dtype_attr(context, otherwise))};
}

Exprs draw_uniform(NodeContext& context, const Shape& shape, DataType otherwise) {
  const double low = context.float_attr("low", 0), high = context.float_attr("high", 1);
  return {draw(context, "random.uniform", low, high, shape, float_dtype_attr(context, otherwise))};
}

Shape shape_attr(NodeContext& context) {
  const auto shape = context.ints_attr("shape");
  if (!shape) context.invalid("attribute 'shape' is missing");
  for (const int64_t size : *shape) {
    if (size < 0 || size > INT32_MAX) context.invalid("its shape has the size {}", size);
  }
  return *shape;
}

// ONNX RandomNormal and RandomUniform (1, 22).
Exprs convert_random_normal(NodeContext& context) {
  return draw_normal(context, shape_attr(context), DataType::float_(32));
}
Exprs convert_random_uniform(NodeContext& context) {
  return draw_uniform(context, shape_attr(context), DataType::float_(32));
}

// ONNX RandomNormalLike and RandomUniformLike (1, 22): of the input's shape, and of its dtype where none is named.
Exprs convert_random_normal_like(NodeContext& context) {
  const Expr like = context.input(0);
  return draw_normal(context, context.known_shape(like), context.dtype(like));
}
Exprs convert_random_uniform_like(NodeContext& context) {
  const Expr like = context.input(0);
  return draw_uniform(context, context.known_shape(like), context.dtype(like));
}

// Whether numbers are dropped, and how many: the third input says it from opset 12 on.
double ratio_of_training(NodeContext& context) {
  if (!context.has(2) || context.number(2, "training_mode") == 0) return 0;
  const double ratio = context.has(1) ? context.number(1, "ratio") : 0.5;
  if (!(ratio >= 0 && ratio < 1)) context.invalid("its ratio is {}, expected 0 to less than 1", ratio);
  return ratio;
}

// ONNX Dropout (6, 7, 10, 12, 13, 22). At inference the data, and a mask that drops nothing.
Exprs convert_dropout(NodeContext& context) {
  context.ignore_attrs({"ratio", "seed"});
  if (context.opset() < 7) context.ignore_attrs({"is_test"});
  if (const double ratio = ratio_of_training(context); ratio != 0) return dropped(context, ratio);
  const Expr x = context.input(0);
  if (!context.wants(1)) return {x};
  const DataType mask = context.opset() < 10 ? context.dtype(x) : DataType::bool_();
  return {x, ops::unary("ones_like", context.cast(x, mask), context.span())};
}

}  // namespace

std::span<const OpRow> random_rows() {
  static constexpr OpRow kRows[] = {
      {"RandomNormal", convert_random_normal, 0, 0},
      {"RandomUniform", convert_random_uniform, 0, 0},
      {"RandomNormalLike", convert_random_normal_like, 1, 1},
      {"RandomUniformLike", convert_random_uniform_like, 1, 1},
      {"Dropout", convert_dropout, 1, 3},
  };
  return kRows;
}

}  // namespace headrace::onnx
