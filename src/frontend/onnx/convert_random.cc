// Operators that draw random numbers. A node's numbers depend on its key alone, so that a model gives the same ones at
// each run: the key is its seed, or, of a node without one, made of the name of its first output (in a function after
// the names of the calls around it).
#include <bit>

#include "frontend/onnx/op_table.h"
#include "object/hash.h"
#include "ops/algorithm/random.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"

namespace headrace::onnx {

namespace {

Expr key_of(NodeContext& context) {
  std::vector<uint64_t> words(static_cast<size_t>(ops::kKeyWords), 0);
  if (context.has_attr("seed") && context.node().op_type == "Dropout") {  // whose seed is an integer
    words[0] = static_cast<uint64_t>(context.int_attr("seed"));
  } else if (context.has_attr("seed")) {
    words[0] = std::bit_cast<uint32_t>(static_cast<float>(context.float_attr("seed", 0)));
  } else {
    words[0] = hash_text(context.unique_name());
    words[1] = 1;  // none of those that a seed makes
  }
  return relay::make_constant(NDArray::from_vector({ops::kKeyWords}, DataType::uint(64), words), context.span());
}

// Returns the dtype that the attribute names; `otherwise` if there is no attribute.
DataType dtype_attr(NodeContext& context, DataType otherwise) {
  if (!context.has_attr("dtype")) return otherwise;
  const ElementType type = context.element_type_attr("dtype", ElementType::kUndefined);
  const auto dtype = find_dtype(type);
  if (!dtype) context.refuse(HR_REASON_DTYPE_UNSUPPORTED, "numbers of {} are not supported", element_type_name(type));
  return *dtype;
}

DataType float_dtype_attr(NodeContext& context, DataType otherwise) {
  const DataType dtype = dtype_attr(context, otherwise);
  if (!dtype.is_float())
    context.invalid("its numbers would be {}; attribute 'dtype' names a floating-point type", dtype);
  return dtype;
}

// Returns the dtype in which random numbers of `dtype` are drawn.
DataType drawn_in(DataType dtype) {
  return dtype == DataType::float_(64) ? DataType::float_(64) : DataType::float_(32);
}

Expr as_dtype(NodeContext& context, const Expr& x, DataType dtype) {
  return context.dtype(x) == dtype ? x : ops::cast(x, dtype, context.span());
}

// Draws random numbers: in [a, b) for random.uniform, with mean a and standard deviation b for random.normal.
Expr draw(NodeContext& context, std::string_view op, double a, double b, const Shape& shape, DataType dtype) {
  const DataType drawn = drawn_in(dtype);
  const Array<Expr> args{key_of(context), context.scalar(a, drawn), context.scalar(b, drawn)};
  const Expr both = ops::call_with<ops::UniformAttrs>(
      op, args, context.span(), [&](auto& attrs) { attrs.out_shape = shape, attrs.out_dtype = drawn; });
  return as_dtype(context, relay::make_tuple_get_item(both, 1, context.span()), dtype);
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

// ONNX Bernoulli (15, 22): 1 where a number in [0, 1) is below the probability.
Exprs convert_bernoulli(NodeContext& context) {
  const Expr p = context.input(0);
  context.check_dtype(p, "the probabilities", is_float, "floating point");
  const DataType drawn = drawn_in(context.dtype(p));
  const Expr numbers = draw(context, "random.uniform", 0, 1, context.known_shape(p), drawn);
  const Expr is_one = ops::binary("less", numbers, as_dtype(context, p, drawn), context.span());
  return {as_dtype(context, is_one, dtype_attr(context, context.dtype(p)))};
}

// ONNX Multinomial (7, 22): indices of classes, whose logarithms of probabilities need not be normalised.
Exprs convert_multinomial(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  if (context.rank(x) != 2) context.invalid("its input has {} dimensions, expected [batch, classes]", context.rank(x));
  const int64_t samples = context.int_attr("sample_size", 1);
  if (samples < 0 || samples > INT32_MAX) context.invalid("attribute 'sample_size' is {}", samples);
  const DataType dtype = dtype_attr(context, DataType::int_(32));
  if (dtype != DataType::int_(32) && dtype != DataType::int_(64))
    context.invalid("its indices would be {}; attribute 'dtype' names int32 or int64", dtype);
  const Expr wide = as_dtype(context, x, drawn_in(context.dtype(x)));
  const Expr both = ops::call_with<ops::MultinomialAttrs>(
      "random.multinomial", {key_of(context), ops::softmax(wide, 1, context.span())}, context.span(),
      [&](auto& attrs) { attrs.num_samples = samples; });
  return {as_dtype(context, relay::make_tuple_get_item(both, 1, context.span()), dtype)};
}

// Whether numbers are dropped, and how many: the third input says it from opset 12 on.
double ratio_of_training(NodeContext& context) {
  if (!context.has(2) || context.number(2, "training_mode") == 0) return 0;
  const double ratio = context.has(1) ? context.number(1, "ratio") : 0.5;
  if (!(ratio >= 0 && ratio < 1)) context.invalid("its ratio is {}, expected 0 to less than 1", ratio);
  return ratio;
}

// ONNX Dropout (6, 7, 10, 12, 13, 22). At inference the data, and a mask that drops nothing. In training each element
// is dropped with probability `ratio`, and the others are divided by what is left of 1.
Exprs convert_dropout(NodeContext& context) {
  context.ignore_attrs({"ratio", "seed"});
  if (context.opset() < 7) context.ignore_attrs({"is_test"});
  const Expr x = context.input(0);
  const DataType dtype = context.dtype(x);
  const double ratio = ratio_of_training(context);
  if (ratio == 0) {
    const DataType mask = context.opset() < 10 ? dtype : DataType::bool_();
    if (!context.wants(1)) return {x};
    return {x, ops::unary("ones_like", as_dtype(context, x, mask), context.span())};
  }
  context.check_dtype(x, "data", is_float, "floating point");
  const DataType drawn = drawn_in(dtype);
  const Expr numbers = draw(context, "random.uniform", 0, 1, context.known_shape(x), drawn);
  const Expr is_kept = ops::binary("greater_equal", numbers, context.scalar(ratio, drawn), context.span());
  const Expr scaled = ops::multiply(x, context.scalar(1 / (1 - ratio), dtype), context.span());
  return {ops::where(is_kept, scaled, context.scalar(0, dtype), context.span()), is_kept};
}

}  // namespace

std::span<const OpRow> random_rows() {
  static constexpr OpRow kRows[] = {
      {"RandomNormal", convert_random_normal, 0, 0},
      {"RandomUniform", convert_random_uniform, 0, 0},
      {"RandomNormalLike", convert_random_normal_like, 1, 1},
      {"RandomUniformLike", convert_random_uniform_like, 1, 1},
      {"Bernoulli", convert_bernoulli, 1, 1},
      {"Multinomial", convert_multinomial, 1, 1},
      {"Dropout", convert_dropout, 1, 3},
  };
  return kRows;
}

}  // namespace headrace::onnx
