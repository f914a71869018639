#include "frontend/onnx/parts/loss.h"

#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/node/op_row.h"
#include "ops/nn/loss.h"

namespace headrace::onnx {

namespace {

// Returns a vector of ones: the weights of classes that the model does not weigh.
Expr equal_weights(NodeContext& context, const Expr& log_probability) {
  const NDArray ones = NDArray::empty({context.known_dim(log_probability, 1)}, context.dtype(log_probability));
  for (int64_t i = 0; i < ones.num_elements(); ++i) set_element(ones.tensor(), i, 1);
  return relay::make_constant(ones, context.span());
}

}  // namespace

Expr negative_log_likelihood(NodeContext& context, const Expr& log_probability) {
  const std::string reduction = context.string_attr("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    context.invalid("attribute 'reduction' is {}, expected none, sum or mean", printable(reduction));
  context.check_dtype(context.input(1), "a target", is_index, "int32 or int64");
  const Expr weights = context.has(2) ? context.input(2) : equal_weights(context, log_probability);
  return ops::nll_loss(log_probability, context.input(1), weights, reduction, context.int_attr("ignore_index", -100),
                       context.span());
}

}  // namespace headrace::onnx
