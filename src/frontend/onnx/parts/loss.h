#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns the loss of ONNX NegativeLogLikelihoodLoss, whose attributes it reads, for logarithms of probabilities.
// Input 1 has the targets, and input 2 is the optional weight of each class. Without ignore_index, targets are within
// the classes.
Expr negative_log_likelihood(NodeContext& context, const Expr& log_probability);

}  // namespace headrace::onnx
