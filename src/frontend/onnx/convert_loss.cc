// Losses, as composites by the formulas of the ONNX specification.
#include "frontend/onnx/field_reader.h"
#include "frontend/onnx/op_table.h"
#include "ops/nn/normalization.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "ops/tensor/slice.h"

namespace headrace::onnx {

namespace {

// -weight[t] * log_probability[n, t, ...] at each target t, reduced as the attribute says; targets that are
// ignore_index count nothing. Input 2 is the optional weight a class. The result is widened.
Expr negative_log_likelihood(NodeContext& context, const Expr& log_probability) {
  const Span& span = context.span();
  const std::string reduction = context.string_attr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    context.invalid("attribute 'reduction' is {}, expected none, sum or mean", printable(reduction));
  context.check_dtype(context.input(1), "a target", is_index, "int32 or int64");
  const bool ignores = context.has_attr("ignore_index");
  const Expr ignored_class = context.int_constant({}, {context.int_attr("ignore_index", 0)});
  Expr target = ops::cast(context.input(1), DataType::int_(64), span);
  const Expr is_ignored = ops::binary("equal", target, ignored_class, span);
  if (ignores) target = ops::where(is_ignored, context.int_constant({}, {0}), target, span);
  const Expr picked = ops::gather(log_probability, 1, ops::expand_dims(target, 1, 1, span), span);
  Expr loss = ops::unary("negative", context.widened(ops::squeeze(picked, Shape{1}, span)), span);
  Expr weight = context.has(2) ? context.widened(ops::take(context.input(2), target, 0, "clip", 0, span))
                               : ops::unary("ones_like", loss, span);
  if (context.has(2)) loss = ops::multiply(loss, weight, span);
  if (ignores) {
    const Expr zero = context.scalar(0, context.dtype(loss));
    loss = ops::where(is_ignored, zero, loss, span);
    weight = ops::where(is_ignored, zero, weight, span);
  }
  if (reduction == "none") return loss;
  const Expr sum = ops::reduce("sum", loss, std::nullopt, false, false, span);
  if (reduction == "sum") return sum;
  if (!context.has(2) && !ignores) return ops::reduce("mean", loss, std::nullopt, false, false, span);
  return ops::divide(sum, ops::reduce("sum", weight, std::nullopt, false, false, span), span);
}

// ONNX NegativeLogLikelihoodLoss (12, 13).
Exprs convert_nll_loss(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (context.rank(context.input(0)) < 2) context.invalid("its input needs a batch and a class axis");
  return {context.cast(negative_log_likelihood(context, context.input(0)), context.dtype(context.input(0)))};
}

// ONNX SoftmaxCrossEntropyLoss (12, 13): its second output are the log probabilities.
Exprs convert_softmax_cross_entropy(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (context.rank(context.input(0)) < 2) context.invalid("its input needs a batch and a class axis");
  const Expr log_probability = ops::log_softmax(context.input(0), 1, context.span());
  const Expr loss = negative_log_likelihood(context, log_probability);
  return {context.cast(loss, context.dtype(log_probability)), log_probability};
}

}  // namespace

std::span<const OpRow> loss_rows() {
  static constexpr OpRow kRows[] = {
      {"NegativeLogLikelihoodLoss", convert_nll_loss, 2, 3},
      {"SoftmaxCrossEntropyLoss", convert_softmax_cross_entropy, 2, 3},
  };
  return kRows;
}

}  // namespace headrace::onnx
