#include "frontend/onnx/parts/loss.h"
#include "frontend/onnx/single/rows.h"

namespace headrace::onnx {

namespace {

// ONNX NegativeLogLikelihoodLoss (12, 13).
Exprs convert_nll_loss(NodeContext& context) {
  context.check_dtype(context.input(0), "data", is_float, "floating point");
  if (context.rank(context.input(0)) < 2) context.invalid("its input needs a batch and a class axis");
  return {negative_log_likelihood(context, context.input(0))};
}

}  // namespace

std::span<const OpRow> loss_rows() {
  static constexpr OpRow kRows[] = {
      {"NegativeLogLikelihoodLoss", convert_nll_loss, 2, 3, 12},
  };
  return kRows;
}

}  // namespace headrace::onnx
