#include "frontend/onnx/compositions/rows.h"
#include "frontend/onnx/parts/loss.h"
#include "ops/nn/normalization.h"

namespace headrace::onnx {

namespace {

// ONNX SoftmaxCrossEntropyLoss (12, 13): its second output are the log probabilities.
Exprs convert_softmax_cross_entropy(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (context.rank(context.input(0)) < 2) context.invalid("its input needs a batch and a class axis");
  const Expr log_probability = ops::log_softmax(context.input(0), 1, context.span());
  return {negative_log_likelihood(context, log_probability), log_probability};
}

}  // namespace

std::span<const OpRow> composed_loss_rows() {
  static constexpr OpRow kRows[] = {
      {"SoftmaxCrossEntropyLoss", convert_softmax_cross_entropy, 2, 3, 12},
  };
  return kRows;
}

}  // namespace headrace::onnx
