#include "frontend/onnx/normalization.h"

#include <numeric>

#include "arith/canonical.h"
#include "frontend/onnx/op_table.h"
#include "ops/nn/group_norm.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

using Dims = std::vector<PrimExpr>;

// Up to opset 12 the axes from `axis` (1) on count as one; later ones take `axis` (-1) alone. `along` is called with a
// tensor and its axis; the result has the input's shape.
template <typename F>
Exprs along_axis(NodeContext& context, F&& along) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const bool flattens = context.opset() < 13;
  const size_t rank = context.rank(x);
  const int64_t requested = context.int_attr("axis", flattens ? 1 : -1);
  const auto count = static_cast<int64_t>(rank);
  // A one-dimensional tensor flattened at 1 has rows of one element; from opset 11 on no axis is as great as the rank.
  const size_t axis = context.opset() < 11 && requested == count ? rank : context.axis_of(requested, rank);
  if (!flattens || axis + 1 == rank) return {along(x, static_cast<int64_t>(axis))};
  const Dims dims = context.dims(x);
  const auto middle = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const Expr matrix = context.reshape(x, Dims{arith::product(Array<PrimExpr>(dims.begin(), middle)),
                                              arith::product(Array<PrimExpr>(middle, dims.end()))});
  return {ops::reshape_like(along(matrix, 1), x, context.span())};
}

Exprs convert_softmax(NodeContext& context) {
  return along_axis(context, [&](const Expr& x, int64_t axis) { return ops::softmax(x, axis, context.span()); });
}
Exprs convert_log_softmax(NodeContext& context) {
  return along_axis(context, [&](const Expr& x, int64_t axis) { return ops::log_softmax(x, axis, context.span()); });
}

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

// ONNX BatchNormalization (6, 7, 9, 14, 15) at inference.
Exprs convert_batch_norm(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  context.ignore_attrs({"momentum"});
  if (context.opset() < 7) context.ignore_attrs({"is_test"});
  if (context.opset() < 9 && !context.flag_attr("spatial", true))
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "spatial = 0 (statistics for each position) is not supported");
  const bool trains = context.opset() >= 14 ? context.flag_attr("training_mode", false) : context.output_count() > 1;
  if (trains) {
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED,
                   "training (statistics of the batch) is not supported; export the model for inference");
  }
  ops::BatchNormAttrs attrs;
  attrs.epsilon = context.float_attr("epsilon", 1e-5);
  Exprs vectors;
  for (size_t i = 1; i < 5; ++i) vectors.push_back(context.cast(context.input(i), context.dtype(x)));
  const Expr results = ops::batch_norm(x, vectors[0], vectors[1], vectors[2], vectors[3], attrs, context.span());
  return {relay::make_tuple_get_item(results, 0, context.span())};
}

}  // namespace

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

namespace {

Shape axes_from(size_t first, size_t rank) {
  Shape axes;
  for (size_t i = first; i < rank; ++i) axes.push_back(static_cast<int64_t>(i));
  return axes;
}

// ONNX InstanceNormalization (6): scale and bias have an element a channel.
Exprs convert_instance_norm(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const size_t rank = context.rank(x);
  if (rank < 3) context.invalid("its input has {} dimensions; it needs a batch, channels and one or more axes", rank);
  for (size_t i = 1; i < 3; ++i) {
    if (context.rank(context.input(i)) != 1) context.invalid("scale and bias must have one dimension");
  }
  return {ops::call_with<ops::InstanceNormAttrs>(
      "nn.instance_norm", {x, context.input(1), context.input(2)}, context.span(),
      [&](ops::InstanceNormAttrs& attrs) { attrs.epsilon = context.float_attr("epsilon", 1e-5); })};
}

// Input `i` may be smaller than x, not larger.
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

// ONNX LayerNormalization (17) over the axes from `axis` on. Where stash_type says so, the mean and the inverse
// deviation are float32; they are computed in it in any case.
Exprs convert_layer_norm(NodeContext& context) {
  const Span& span = context.span();
  const Expr x = context.input(0), scale = context.input(1);
  context.check_dtype(x, "data", is_float, "floating point");
  const size_t rank = context.rank(x), axis = context.axis_of(context.int_attr("axis", -1), rank);
  const double epsilon = context.float_attr("epsilon", 1e-5);
  const DataType dtype = context.dtype(x);
  const bool stashes_float32 = context.float_type_attr("stash_type", ElementType::kFloat) == DataType::float_(32);
  if (axis + 1 == rank && context.rank(scale) == 1 && context.output_count() == 1 && dtype.bits() != 16) {
    const Expr bias = context.has(2) ? context.input(2) : ops::unary("zeros_like", scale, span);
    ops::LayerNormAttrs attrs;
    attrs.epsilon = epsilon;
    return {ops::layer_norm(x, scale, bias, attrs, span)};
  }
  check_broadcasts_to(context, 1, "scale", x);
  if (context.has(2)) check_broadcasts_to(context, 2, "bias", x);
  const Normalized normal = normalize(context, context.widened(x), axes_from(axis, rank), epsilon);
  Expr result = ops::multiply(context.cast(normal.result, dtype), scale, span);
  if (context.has(2)) result = ops::add(result, context.input(2), span);
  const DataType stash = stashes_float32 ? DataType::float_(32) : dtype;
  const auto stashed = [&](const Expr& value) { return context.cast(value, stash); };
  return {result, stashed(normal.mean), stashed(normal.inverse_deviation)};
}

// ONNX GroupNormalization (18, 21): up to opset 20 scale and bias have an element a group, later one a channel.
Exprs convert_group_norm(NodeContext& context) {
  const Span& span = context.span();
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  if (context.rank(x) < 3) context.invalid("its input has {} dimensions; it needs 3 or more", context.rank(x));
  const int64_t groups = context.int_attr("num_groups"), channels = context.known_dim(x, 1);
  if (groups < 1 || channels % groups != 0) context.invalid("{} channels do not make {} groups", channels, groups);
  const bool stashes_float32 =
      context.opset() >= 21 && context.float_type_attr("stash_type", ElementType::kFloat) == DataType::float_(32);
  const bool widens = stashes_float32 && context.dtype(x).bits() == 16;
  const double epsilon = context.float_attr("epsilon", 1e-5);
  const auto vector = [&](size_t i) {
    const Expr own = context.input(i);
    const int64_t size = context.known_dim(own, 0), wanted = context.opset() < 21 ? groups : channels;
    if (size != wanted)
      context.invalid("its {} has {} elements, expected {}: one a {} {} opset 21", i == 1 ? "scale" : "bias", size,
                      wanted, context.opset() < 21 ? "group" : "channel", context.opset() < 21 ? "before" : "from");
    const Expr each = context.opset() < 21 ? ops::repeat(own, channels / groups, 0, span) : own;
    return widens ? ops::cast(each, DataType::float_(32), span) : each;
  };
  const Expr wide = widens ? ops::cast(x, DataType::float_(32), span) : x;
  const Expr result = ops::call_with<ops::GroupNormAttrs>("nn.group_norm", {wide, vector(1), vector(2)}, span,
                                                          [&](ops::GroupNormAttrs& attrs) {
                                                            attrs.num_groups = groups;
                                                            attrs.epsilon = epsilon;
                                                          });
  return {widens ? ops::cast(result, context.dtype(x), span) : result};
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

// ONNX LRN (1, 13).
Exprs convert_lrn(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  ops::LRNAttrs attrs;
  attrs.size = context.int_attr("size");
  attrs.alpha = context.float_attr("alpha", 1e-4);
  attrs.beta = context.float_attr("beta", 0.75);
  attrs.bias = context.float_attr("bias", 1);
  return {ops::lrn(context.input(0), attrs, context.span())};
}

// ONNX LpNormalization (1, 22): x over its norm along an axis; 0 where the norm is 0.
Exprs convert_lp_normalization(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const Span& span = context.span();
  const int64_t axis = context.int_attr("axis", -1), p = context.int_attr("p", 2);
  if (p != 1 && p != 2) context.invalid("attribute 'p' is {}, expected 1 or 2", p);
  const Expr wide = context.widened(x);
  const Expr powers = p == 1 ? ops::unary("abs", wide, span) : ops::multiply(wide, wide, span);
  const Expr sum = ops::reduce("sum", powers, Shape{axis}, true, false, span);
  const Expr norm = p == 1 ? sum : ops::unary("sqrt", sum, span), zero = context.scalar(0, context.dtype(wide));
  const Expr result = ops::where(ops::binary("equal", norm, zero, span), zero, ops::divide(wide, norm, span), span);
  return {context.cast(result, context.dtype(x))};
}

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

std::span<const OpRow> normalization_rows() {
  static constexpr OpRow kRows[] = {
      {"Softmax", convert_softmax, 1, 1},
      {"LogSoftmax", convert_log_softmax, 1, 1},
      {"Hardmax", convert_hardmax, 1, 1},
      {"BatchNormalization", convert_batch_norm, 5, 5},
      {"InstanceNormalization", convert_instance_norm, 3, 3},
      {"LayerNormalization", convert_layer_norm, 2, 3},
      {"GroupNormalization", convert_group_norm, 3, 3},
      {"RMSNormalization", convert_rms_norm, 2, 2},
      {"SimplifiedLayerNormalization", convert_simplified_layer_norm, 2, 2},
      {"LRN", convert_lrn, 1, 1},
      {"LpNormalization", convert_lp_normalization, 1, 1},
      {"MeanVarianceNormalization", convert_mean_variance_normalization, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
