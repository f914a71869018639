#include "frontend/onnx/compositions/normalization.h"

#include <numeric>

#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/along_axis.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"

namespace headrace::onnx {

Normalized normalize(NodeContext& context, const Expr& x, const Shape& axes, double epsilon) {
  const Span& span = context.span();
  const Expr mean = ops::reduce("mean", x, axes, true, false, span);
  const Expr variance = ops::variance(x, mean, axes, true, false, span);
  const Expr steady = ops::add(variance, context.scalar(epsilon, context.dtype(x)), span);
  const Expr inverse = ops::unary("rsqrt", steady, span);
  return {ops::multiply(ops::subtract(x, mean, span), inverse, span), mean, inverse};
}

Normalized normalize_by_root(NodeContext& context, const Expr& x, const Shape& axes, double epsilon) {
  const Span& span = context.span();
  const Expr mean = ops::reduce("mean", ops::multiply(x, x, span), axes, true, false, span);
  const Expr steady = ops::add(mean, context.scalar(epsilon, context.dtype(x)), span);
  const Expr inverse = ops::unary("rsqrt", steady, span);
  return {ops::multiply(x, inverse, span), Expr(), inverse};
}

void check_broadcasts_to(NodeContext& context, size_t i, std::string_view name, const Expr& x) {
  const std::vector<PrimExpr> own = context.dims(context.input(i)), whole = context.dims(x);
  bool fits = own.size() <= whole.size();
  for (size_t k = 0; fits && k < own.size(); ++k) {
    const auto size = as_int(own[k]), wanted = as_int(whole[k + whole.size() - own.size()]);
    fits = !size || *size == 1 || !wanted || *size == *wanted;
  }
  if (!fits)
    context.invalid("its {} {} does not broadcast to {}", name, to_string(context.type(context.input(i))),
                    to_string(context.type(x)));
}

namespace {

Shape axes_from(size_t first, size_t rank) {
  Shape axes;
  for (size_t i = first; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

}  // namespace

Exprs composed_layer_norm(NodeContext& context, size_t axis, double epsilon, DataType stash) {
  const Expr x = context.input(0);
  const Normalized normal = normalize(context, context.widened(x), axes_from(axis, context.rank(x)), epsilon);
  Expr result = ops::multiply(context.cast(normal.result, context.dtype(x)), context.input(1), context.span());
  if (context.has(2)) result = ops::add(result, context.input(2), context.span());
  return {result, context.cast(normal.mean, stash), context.cast(normal.inverse_deviation, stash)};
}

Expr over_sum_of_magnitudes(NodeContext& context, const Expr& x, int64_t axis) {
  const Span& span = context.span();
  const Expr wide = context.widened(x), zero = context.scalar(0, context.dtype(wide));
  const Expr sum = ops::reduce("sum", ops::unary("abs", wide, span), Shape{axis}, true, false, span);
  const Expr result = ops::where(ops::binary("equal", sum, zero, span), zero, ops::divide(wide, sum, span), span);
  return context.cast(result, context.dtype(x));
}

namespace {

// 1 at the first greatest element along the axis, 0 elsewhere.
Expr hardmax(NodeContext& context, const Expr& x, int64_t axis) {
  const Span& span = context.span();
  const int64_t size = context.known_dim(x, static_cast<size_t>(axis));
  context.check_table_size(size);
  std::vector<int64_t> positions(static_cast<size_t>(size));
  std::iota(positions.begin(), positions.end(), 0);
  Shape shape(context.rank(x), 1);
  shape[static_cast<size_t>(axis)] = size;
  const Expr counter = context.int_constant(shape, positions);
  const Expr greatest = ops::arg_reduce("argmax", x, Shape{axis}, true, false, DataType::int_(64), span);
  return ops::cast(ops::binary("equal", greatest, counter, span), context.dtype(x), span);
}
Exprs convert_hardmax(NodeContext& context) {
  return along_axis(context, [&](const Expr& x, int64_t axis) { return hardmax(context, x, axis); });
}

// Returns ONNX RMSNormalization (23): x over the root of its mean square, over the axes from `axis` on; and the inverse
// of that root in the stash type.
Exprs rms_norm(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const size_t rank = context.rank(x), axis = context.axis_of(context.int_attr("axis", -1), rank);
  const bool stashes_float32 = context.float_type_attr("stash_type", ElementType::kFloat) == DataType::float_(32);
  const double epsilon = context.float_attr("epsilon", 1e-5);
  const Normalized normal = normalize_by_root(context, context.widened(x), axes_from(axis, rank), epsilon);
  check_broadcasts_to(context, 1, "scale", x);
  const Expr scale = context.input(1);
  const bool narrows = !stashes_float32 || context.dtype(scale) == context.dtype(x);
  const Expr fitting = narrows ? context.cast(normal.result, context.dtype(x)) : normal.result;
  return {ops::multiply(fitting, scale, context.span()),
          context.cast(normal.inverse_deviation, stashes_float32 ? DataType::float_(32) : context.dtype(x))};
}

Exprs convert_rms_norm(NodeContext& context) { return {rms_norm(context)[0]}; }

// SimplifiedLayerNormalization, by which onnxruntime's optimiser replaces the nodes of RMSNormalization in the default
// domain of any opset. Its second output is the inverse of the root.
Exprs convert_simplified_layer_norm(NodeContext& context) { return rms_norm(context); }

// ONNX MeanVarianceNormalization (9, 13): (x - mean) / (deviation + 1e-9).
Exprs convert_mean_variance_normalization(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const Span& span = context.span();
  const Shape axes = context.ints_attr("axes").value_or(Shape{0, 2, 3});
  const Expr wide = context.widened(x), mean = ops::reduce("mean", wide, axes, true, false, span);
  const Expr deviation = ops::unary("sqrt", ops::variance(wide, mean, axes, true, false, span), span);
  const Expr steady = ops::add(deviation, context.scalar(1e-9, context.dtype(wide)), span);
  return {context.cast(ops::divide(ops::subtract(wide, mean, span), steady, span), context.dtype(x))};
}

}  // namespace

std::span<const OpRow> composed_normalization_rows() {
  static constexpr OpRow kRows[] = {
      {"Hardmax", convert_hardmax, 1, 1},
      {"RMSNormalization", convert_rms_norm, 2, 2, 23},
      {"SimplifiedLayerNormalization", convert_simplified_layer_norm, 2, 2},
      {"MeanVarianceNormalization", convert_mean_variance_normalization, 1, 1, 9},
  };
  return kRows;
}

}  // namespace headrace::onnx
