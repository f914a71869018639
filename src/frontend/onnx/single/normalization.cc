#include <limits>

#include "frontend/onnx/compositions/normalization.h"
#include "frontend/onnx/parts/along_axis.h"
#include "frontend/onnx/single/rows.h"
#include "ops/nn/group_norm.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"

namespace headrace::onnx {

namespace {

Exprs convert_softmax(NodeContext& context) {
  return along_axis(context, [&](const Expr& x, int64_t axis) { return ops::softmax(x, axis, context.span()); });
}
Exprs convert_log_softmax(NodeContext& context) {
  return along_axis(context, [&](const Expr& x, int64_t axis) { return ops::log_softmax(x, axis, context.span()); });
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

// Returns input `i`, which broadcasts to axes of these sizes, as one vector.
Expr flat_parameter(NodeContext& context, size_t i, const Shape& sizes) {
  const Expr own = context.input(i);
  const bool is_whole = as_shape(context.type(own)->shape) == std::optional(sizes);
  const Expr whole = is_whole ? own : ops::broadcast_to(own, sizes, context.span());
  return sizes.size() == 1 ? whole : ops::reshape(whole, Shape{num_elements(sizes)}, false, context.span());
}

// Calls nn.layer_norm over the axes from `axis` on, as one axis. Returns null where it cannot: if the scale or the bias
// differs along other axes, or if several axes or a scale or bias of another shape meet a symbolic size.
Expr layer_norm(NodeContext& context, size_t axis, double epsilon) {
  const Span& span = context.span();
  const Expr x = context.input(0);
  const std::vector<PrimExpr> dims = context.dims(x);
  const auto first = dims.begin() + static_cast<std::ptrdiff_t>(axis);
  const auto sizes = as_shape(Array<PrimExpr>(first, dims.end()));
  const bool is_last = axis + 1 == dims.size();
  Exprs vectors;
  for (size_t i = 1; i < 3; ++i) {
    if (!context.has(i)) continue;
    const size_t rank = context.rank(context.input(i));
    if (rank > dims.size() - axis || (!sizes && !(is_last && rank == 1))) return {};
    vectors.push_back(sizes ? flat_parameter(context, i, *sizes) : context.input(i));
  }
  if (vectors.size() == 1) vectors.push_back(ops::unary("zeros_like", vectors[0], span));
  ops::LayerNormAttrs attrs;
  attrs.epsilon = epsilon;
  if (is_last) return ops::layer_norm(x, vectors[0], vectors[1], attrs, span);
  if (num_elements(*sizes) == 0) return {};
  const Expr rows = ops::reshape(x, Shape{-1, num_elements(*sizes)}, false, span);
  return ops::reshape_like(ops::layer_norm(rows, vectors[0], vectors[1], attrs, span), x, span);
}

// ONNX LayerNormalization (17) over the axes from `axis` on. The mean and the inverse deviation are given in float32
// where stash_type says so. 16-bit numbers are computed in float32 in any case, as nn.layer_norm does.
Exprs convert_layer_norm(NodeContext& context) {
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  const size_t axis = context.axis_of(context.int_attr("axis", -1), context.rank(x));
  const double epsilon = context.float_attr("epsilon", 1e-5);
  const bool stashes_float32 = context.float_type_attr("stash_type", ElementType::kFloat) == DataType::float_(32);
  check_broadcasts_to(context, 1, "scale", x);
  if (context.has(2)) check_broadcasts_to(context, 2, "bias", x);
  if (!context.wants(1) && !context.wants(2)) {
    if (const Expr result = layer_norm(context, axis, epsilon)) return {result};
  }
  return composed_layer_norm(context, axis, epsilon, stashes_float32 ? DataType::float_(32) : context.dtype(x));
}

// ONNX GroupNormalization (18, 21): up to opset 20 scale and bias have an element a group, later one a channel.
// Whatever stash_type says, nn.group_norm computes 16-bit numbers in float32.
Exprs convert_group_norm(NodeContext& context) {
  const Span& span = context.span();
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  if (context.rank(x) < 3) context.invalid("its input has {} dimensions; it needs 3 or more", context.rank(x));
  const int64_t groups = context.int_attr("num_groups"), channels = context.known_dim(x, 1);
  if (groups < 1 || channels % groups != 0) context.invalid("{} channels do not make {} groups", channels, groups);
  const bool is_by_channel = context.opset() >= 21;
  if (is_by_channel) context.float_type_attr("stash_type", ElementType::kFloat);
  const double epsilon = context.float_attr("epsilon", 1e-5);
  const auto vector = [&](size_t i) {
    const Expr own = context.input(i);
    const int64_t size = context.known_dim(own, 0), wanted = is_by_channel ? channels : groups;
    if (size != wanted)
      context.invalid("its {} has {} elements, expected {}: one a {} {} opset 21", i == 1 ? "scale" : "bias", size,
                      wanted, is_by_channel ? "channel" : "group", is_by_channel ? "from" : "before");
    return is_by_channel ? own : ops::repeat(own, channels / groups, 0, span);
  };
  return {ops::call_with<ops::GroupNormAttrs>("nn.group_norm", {x, vector(1), vector(2)}, span,
                                              [&](ops::GroupNormAttrs& attrs) {
                                                attrs.num_groups = groups;
                                                attrs.epsilon = epsilon;
                                              })};
}

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
  const int64_t axis = context.int_attr("axis", -1), p = context.int_attr("p", 2);
  if (p != 1 && p != 2) context.invalid("attribute 'p' is {}, expected 1 or 2", p);
  if (p == 1) return {over_sum_of_magnitudes(context, x, axis)};
  // The least sum that is divided by: of a vector of zeros it makes zeros, and any other sum is at least as great.
  const double least = context.dtype(x) == DataType::float_(64) ? std::numeric_limits<double>::denorm_min()
                                                                : std::numeric_limits<float>::denorm_min();
  return {
      ops::call_with<ops::L2NormalizeAttrs>("nn.l2_normalize", {x}, context.span(), [&](ops::L2NormalizeAttrs& attrs) {
        attrs.eps = least;
        attrs.axis = {axis};
      })};
}

}  // namespace

std::span<const OpRow> normalization_rows() {
  static constexpr OpRow kRows[] = {
      {"Softmax", convert_softmax, 1, 1},
      {"LogSoftmax", convert_log_softmax, 1, 1},
      {"BatchNormalization", convert_batch_norm, 5, 5},
      {"InstanceNormalization", convert_instance_norm, 3, 3},
      {"LayerNormalization", convert_layer_norm, 2, 3},
      {"GroupNormalization", convert_group_norm, 3, 3, 18},
      {"LRN", convert_lrn, 1, 1},
      {"LpNormalization", convert_lp_normalization, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
