// Operators of the domain com.microsoft, which onnxruntime's optimiser writes into models, as composites of what they
// were made of. Their definitions are those of docs/ContribOperators.md of onnxruntime; attention is in
// microsoft_attention.cc.
#include <numeric>

#include "frontend/onnx/compositions/activation.h"
#include "frontend/onnx/parts/conv.h"
#include "frontend/onnx/parts/matmul.h"
#include "frontend/onnx/compositions/normalization.h"
#include "frontend/onnx/compositions/rows.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

// ---- Conv, Gemm and MatMul with what follows them

// Applies the attribute `activation` of a convolution, whose numbers are in `activation_params`.
Expr with_conv_activation(NodeContext& context, const Expr& x) {
  const std::vector<float> given = context.floats_attr("activation_params").value_or(std::vector<float>());
  if (!context.has_attr("activation")) return x;
  const std::vector<double> numbers(given.begin(), given.end());
  return fused_activation(context, x, context.string_attr("activation", ""), numbers);
}

// FusedConv: activation(Conv(X, W, B) + Z).
Exprs convert_fused_conv(NodeContext& context) {
  const Span& span = context.span();
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  Expr result = with_bias(context, convolution(context, context.input(0), context.input(1)));
  if (context.has(3)) result = ops::add(result, context.input(3), span);
  return {with_conv_activation(context, result)};
}

// NhwcConv and NhwcFusedConv: the data, Z and the result have their channels last; the weight is as in Conv.
Exprs convert_nhwc_conv(NodeContext& context) {
  const Span& span = context.span();
  const Expr x = context.input(0);
  context.check_dtype(x, "data", is_float, "floating point");
  if (context.string_attr("auto_pad", "NOTSET").starts_with("SAME"))
    context.refuse(HR_REASON_ATTRIBUTE_UNSUPPORTED, "attribute 'auto_pad' is not supported; give explicit pads");
  const auto rank = static_cast<int64_t>(context.rank(x));
  if (rank < 3) context.invalid("its input has {} dimensions; it needs a batch, channels and one or more axes", rank);
  Shape channels_first{0, rank - 1}, channels_last{0};
  for (int64_t i = 1; i + 1 < rank; ++i) channels_first.push_back(i), channels_last.push_back(i + 1);
  channels_last.push_back(1);
  Expr result = with_bias(context, convolution(context, ops::transpose(x, channels_first, span), context.input(1)));
  if (context.has(3)) result = ops::add(result, ops::transpose(context.input(3), channels_first, span), span);
  return {ops::transpose(with_conv_activation(context, result), channels_last, span)};
}

// FusedGemm: activation(Gemm(A, B, C)); the activation's alpha is the attribute activation_alpha, and so on.
Exprs convert_fused_gemm(NodeContext& context) {
  const Expr result = gemm(context);
  if (!context.has_attr("activation")) return {result};
  const std::string name = context.string_attr("activation", "");
  std::vector<double> numbers;
  for (const std::string_view number : fused_activation_numbers(context, name)) {
    const std::string attribute = fmt::format("activation_{}", number);
    if (!context.has_attr(attribute))
      context.invalid("attribute '{}' is missing, which the activation {} needs", attribute, name);
    numbers.push_back(context.float_attr(attribute, 0));
  }
  return {fused_activation(context, result, name, numbers)};
}

// Returns a matrix operand of FusedMatMul. With `moves_batch`, its first axis is moved behind the batch axes; then,
// with `swaps`, its last two axes change places. A vector stays as it is.
Expr matrix_operand(NodeContext& context, size_t i, bool moves_batch, bool swaps) {
  const Expr x = context.input(i);
  const auto rank = static_cast<int64_t>(context.rank(x));
  if (moves_batch && rank < 3) context.invalid("input {} has {} dimensions and no batch to transpose", i, rank);
  if (rank < 2 || (!moves_batch && !swaps)) return x;
  Shape axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  if (moves_batch) std::rotate(axes.begin(), axes.begin() + 1, axes.end() - 1);
  if (swaps) std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
  return ops::transpose(x, axes, context.span());
}

// FusedMatMul and TransposeMatMul: alpha * A' B', the primes transposing. With an alpha the product of 16-bit numbers
// is float32, since it alone may be past their range.
Exprs convert_fused_matmul(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  const Expr a =
      matrix_operand(context, 0, context.flag_attr("transBatchA", false), context.flag_attr("transA", false));
  const Expr b =
      matrix_operand(context, 1, context.flag_attr("transBatchB", false), context.flag_attr("transB", false));
  const double alpha = context.float_attr("alpha", 1);
  if (alpha == 1) return {multiply(context, a, b)};
  const Expr product = multiply(context, context.widened(a), context.widened(b));
  return {context.cast(times_factor(context, product, alpha), context.dtype(a))};
}

// ---- Gelu

Expr with_bias_of(NodeContext& context, size_t i) {
  return context.has(i) ? ops::add(context.input(0), context.input(i), context.span()) : context.input(0);
}

// Gelu, and BiasGelu of the sum of its inputs.
Exprs convert_bias_gelu(NodeContext& context) { return {gelu(context, with_bias_of(context, 1), false)}; }
// FastGelu: by tanh, with an optional bias.
Exprs convert_fast_gelu(NodeContext& context) { return {gelu(context, with_bias_of(context, 1), true)}; }

// QuickGelu: x * sigmoid(alpha * x).
Exprs convert_quick_gelu(NodeContext& context) {
  const Expr x = context.input(0);
  const Span& span = context.span();
  context.check_dtype(x, "data", is_float, "floating point");
  const Expr inner = ops::multiply(x, context.scalar(context.float_attr("alpha", 1.702), context.dtype(x)), span);
  return {ops::multiply(x, ops::unary("sigmoid", inner, span), span)};
}

// ---- Normalisation of sums

constexpr double kSkipEpsilon = 1e-12;

// Returns the layer normalisation of widened data over its last axis, in the dtype `dtype`; `beta` may be null.
Expr layer_norm_of(NodeContext& context, const Expr& x, const Expr& gamma, const Expr& beta, double epsilon,
                   DataType dtype) {
  const Expr scale = context.widened(gamma);
  ops::LayerNormAttrs attrs;
  attrs.epsilon = epsilon;
  const Expr bias = beta ? context.widened(beta) : ops::unary("zeros_like", scale, context.span());
  return context.cast(ops::layer_norm(x, scale, bias, attrs, context.span()), dtype);
}

// Returns input + skip + bias, widened. The skip has the shape of the input, or lacks its batch.
Expr skip_sum(NodeContext& context, size_t bias) {
  const Expr x = context.input(0), skip = context.input(1);
  context.check_dtype(x, "data", is_float, "floating point");
  const std::vector<PrimExpr> whole = context.dims(x), own = context.dims(skip);
  if (whole.size() < 2 || whole.size() > 3 || own.size() < 2 || own.size() > whole.size())
    context.invalid("its input has {} and its skip {} dimensions, expected 2 or 3 each", whole.size(), own.size());
  for (size_t i = 1; i <= own.size(); ++i) {
    const auto size = as_int(own[own.size() - i]), wanted = as_int(whole[whole.size() - i]);
    if (size && wanted && *size != *wanted && !(i == 3 && *size == 1))
      context.invalid("its skip has the shape {}, which does not fit its input {}", to_string(context.type(skip)),
                      to_string(context.type(x)));
  }
  const Expr sum = ops::add(context.widened(x), context.widened(skip), context.span());
  return context.has(bias) ? ops::add(sum, context.widened(context.input(bias)), context.span()) : sum;
}

// SkipLayerNormalization: the normalised sum, its mean and inverse deviation, and the sum.
Exprs convert_skip_layer_norm(NodeContext& context) {
  const Expr sum = skip_sum(context, 4);
  const DataType dtype = context.dtype(context.input(0)), stash = DataType::float_(32);
  const double epsilon = context.float_attr("epsilon", kSkipEpsilon);
  const Expr result =
      layer_norm_of(context, sum, context.input(2), context.has(3) ? context.input(3) : Expr(), epsilon, dtype);
  Exprs outputs{result, Expr(), Expr(), context.cast(sum, dtype)};
  if (context.wants(1) || context.wants(2)) {
    const Normalized parts = normalize(context, sum, Shape{-1}, epsilon);
    outputs[1] = context.cast(parts.mean, stash);
    outputs[2] = context.cast(parts.inverse_deviation, stash);
  }
  return outputs;
}

// SkipSimplifiedLayerNormalization: the sum over the root of its mean square, the inverse of that root, and the sum.
Exprs convert_skip_simplified_layer_norm(NodeContext& context) {
  const Expr sum = skip_sum(context, 3);
  const DataType dtype = context.dtype(context.input(0));
  const Normalized parts = normalize_by_root(context, sum, Shape{-1}, context.float_attr("epsilon", kSkipEpsilon));
  const Expr result = ops::multiply(parts.result, context.widened(context.input(2)), context.span());
  return {context.cast(result, dtype), Expr(), context.cast(parts.inverse_deviation, DataType::float_(32)),
          context.cast(sum, dtype)};
}

// ---- EmbedLayerNormalization

// Returns the rows of the table in input `table` that the ids in input `ids` name.
Expr rows_of(NodeContext& context, size_t table, size_t ids) {
  context.check_dtype(context.input(ids), "an index", is_index, "int32 or int64");
  if (context.rank(context.input(table)) != 2)
    context.invalid("input {} has {} dimensions, expected a table of 2", table, context.rank(context.input(table)));
  return ops::take(context.input(table), context.input(ids), 0, "fast", 0, context.span());
}

// Returns the embeddings of the positions: of the ids in input 8, or of 0, 1, ... in the length of the words.
Expr position_rows(NodeContext& context) {
  if (context.has(8)) return rows_of(context, 3, 8);
  const Expr table = context.input(3);
  const int64_t length = context.known_dim(context.input(0), 1);
  if (context.rank(table) != 2 || context.known_dim(table, 0) < length)
    context.invalid("its position_embedding {} has no row for each of {} positions", to_string(context.type(table)),
                    length);
  return ops::strided_slice(table, {0}, {length}, {1}, {0}, "end", context.span());
}

// EmbedLayerNormalization: the normalised sum of the embeddings of words, positions and segments; the number of ones in
// each row of the mask, 0 without a mask; and the sum.
Exprs convert_embed_layer_norm(NodeContext& context) {
  const Span& span = context.span();
  const Expr ids = context.input(0);
  if (context.rank(ids) != 2) context.invalid("its input_ids have {} dimensions, expected 2", context.rank(ids));
  if (context.has(1) != context.has(4))
    context.invalid("one of segment_ids and segment_embedding is missing; give both or none");
  context.ignore_attrs({"mask_index_type"});  // helps onnxruntime infer a shape
  const DataType dtype = context.dtype(context.input(2));
  Expr sum = ops::add(context.widened(rows_of(context, 2, 0)), context.widened(position_rows(context)), span);
  if (context.has(1)) sum = ops::add(sum, context.widened(rows_of(context, 4, 1)), span);
  const double epsilon = context.float_attr("epsilon", kSkipEpsilon);
  const Expr result = layer_norm_of(context, sum, context.input(5), context.input(6), epsilon, dtype);
  Expr ones = ops::unary("zeros_like", ids, span);
  if (context.has(7)) {
    const Expr mask = context.input(7);
    context.check_dtype(mask, "a mask", is_index, "int32 or int64");
    ones = ops::binary("equal", mask, context.scalar(1, context.dtype(mask)), span);
  }
  const Expr count = ops::reduce("sum", context.cast(ones, DataType::int_(32)), Shape{1}, false, false, span);
  return {result, count, context.cast(sum, dtype)};
}

}  // namespace

std::span<const OpRow> microsoft_rows() {
  static constexpr OpRow kRows[] = {
      {"FusedConv", convert_fused_conv, 2, 4},
      {"NhwcConv", convert_nhwc_conv, 2, 3},
      {"NhwcFusedConv", convert_nhwc_conv, 2, 4},
      {"FusedGemm", convert_fused_gemm, 2, 3},
      {"FusedMatMul", convert_fused_matmul, 2, 2},
      {"TransposeMatMul", convert_fused_matmul, 2, 2},
      {"Gelu", convert_bias_gelu, 1, 1},
      {"BiasGelu", convert_bias_gelu, 2, 2},
      {"FastGelu", convert_fast_gelu, 1, 2},
      {"QuickGelu", convert_quick_gelu, 1, 1},
      {"SkipLayerNormalization", convert_skip_layer_norm, 3, 5},
      {"SkipSimplifiedLayerNormalization", convert_skip_simplified_layer_norm, 3, 4},
      {"EmbedLayerNormalization", convert_embed_layer_norm, 1, 9},
  };
  return kRows;
}

}  // namespace headrace::onnx
