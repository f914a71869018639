#include <limits>

#include "frontend/onnx/compositions/normalization.h"
#include "frontend/onnx/parts/along_axis.h"
#include "frontend/onnx/single/rows.h"
#include "ops/nn/group_norm.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/repeat.h"

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
  return composed_layer_norm(context, axis, epsilon, stashes_float32 ? DataType::float_(32) : dtype);
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
  return {over_norm(context, x, axis, p)};
}

}  // namespace

std::span<const OpRow> normalization_rows() {
  static constexpr OpRow kRows[] = {
      {"Softmax", convert_softmax, 1, 1},
      {"LogSoftmax", convert_log_softmax, 1, 1},
      {"BatchNormalization", convert_batch_norm, 5, 5},
      {"InstanceNormalization", convert_instance_norm, 3, 3},
      {"LayerNormalization", convert_layer_norm, 2, 3},
      {"GroupNormalization", convert_group_norm, 3, 3},
      {"LRN", convert_lrn, 1, 1},
      {"LpNormalization", convert_lp_normalization, 1, 1},
  };
  return kRows;
}

}  // namespace headrace::onnx
