#include "frontend/onnx/compositions/random.h"

#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/random.h"
#include "ops/algorithm/random.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"

namespace headrace::onnx {

Exprs dropped(NodeContext& context, double ratio) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const DataType dtype = context.dtype(x), drawn = drawn_in(dtype);
  const Expr numbers = draw(context, "random.uniform", 0, 1, context.known_shape(x), drawn);
  const Expr is_kept = ops::binary("greater_equal", numbers, context.scalar(ratio, drawn), context.span());
  const Expr scaled = ops::multiply(x, context.scalar(1 / (1 - ratio), dtype), context.span());
  return {ops::where(is_kept, scaled, context.scalar(0, dtype), context.span()), is_kept};
}

namespace {

// ONNX Bernoulli (15, 22): 1 where a number in [0, 1) is below the probability.
Exprs convert_bernoulli(NodeContext& context) {
  const Expr p = context.input(0);
  context.check_dtype(p, "the probabilities", is_float, "floating point");
  const DataType drawn = drawn_in(context.dtype(p));
  const Expr numbers = draw(context, "random.uniform", 0, 1, context.known_shape(p), drawn);
  const Expr is_one = ops::binary("less", numbers, context.cast(p, drawn), context.span());
  return {context.cast(is_one, dtype_attr(context, context.dtype(p)))};
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
  const Expr wide = context.cast(x, drawn_in(context.dtype(x)));
  const Expr both = ops::call_with<ops::MultinomialAttrs>(
      "random.multinomial", {key_of(context), ops::softmax(wide, 1, context.span())}, context.span(),
      [&](auto& attrs) { attrs.num_samples = samples; });
  return {context.cast(relay::make_tuple_get_item(both, 1, context.span()), dtype)};
}

}  // namespace

std::span<const OpRow> composed_random_rows() {
  static constexpr OpRow kRows[] = {
      {"Bernoulli", convert_bernoulli, 1, 1, 15},
      {"Multinomial", convert_multinomial, 1, 1, 7},
  };
  return kRows;
}

}  // namespace headrace::onnx
