// Losses: nn.nll_loss, of what nn.log_softmax gives for SoftmaxCrossEntropyLoss.
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/op_table.h"
#include "ops/nn/loss.h"
#include "ops/nn/normalization.h"

namespace headrace::onnx {

namespace {

// Returns a vector of ones: the weights of classes that the model does not weigh.
Expr equal_weights(NodeContext& context, const Expr& log_probability) {
  const NDArray ones = NDArray::empty({context.known_dim(log_probability, 1)}, context.dtype(log_probability));
  for (int64_t i = 0; i < ones.num_elements(); ++i) set_element(ones.tensor(), i, 1);
  return relay::make_constant(ones, context.span());
}

// Input 2 is the optional weight of each class. Without ignore_index, targets are within the classes.
Expr negative_log_likelihood(NodeContext& context, const Expr& log_probability) {
  const std::string reduction = context.string_attr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    context.invalid("attribute 'reduction' is {}, expected none, sum or mean", printable(reduction));
  context.check_dtype(context.input(1), "a target", is_index, "int32 or int64");
  const Expr weights = context.has(2) ? context.input(2) : equal_weights(context, log_probability);
  return ops::nll_loss(log_probability, context.input(1), weights, reduction, context.int_attr("ignore_index", -100),
                       context.span());
}

// ONNX NegativeLogLikelihoodLoss (12, 13).
Exprs convert_nll_loss(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (context.rank(context.input(0)) < 2) context.invalid("its input needs a batch and a class axis");
  return {negative_log_likelihood(context, context.input(0))};
}

// ONNX SoftmaxCrossEntropyLoss (12, 13): its second output are the log probabilities.
Exprs convert_softmax_cross_entropy(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (context.rank(context.input(0)) < 2) context.invalid("its input needs a batch and a class axis");
  const Expr log_probability = ops::log_softmax(context.input(0), 1, context.span());
  return {negative_log_likelihood(context, log_probability), log_probability};
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
