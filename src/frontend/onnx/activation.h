// Activations that are part of other operators.
#pragma once

#include <span>

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Applies an activation that onnxruntime's optimiser moves into the operator before it: "Relu", "LeakyRelu", ... The
// numbers are those of the activation's own attributes, in the order of fused_activation_numbers(). Throws Refused for
// a name that is not supported, and for too few numbers.
Expr fused_activation(NodeContext& context, const Expr& x, std::string_view name, std::span<const double> numbers);
// Returns the names of the attributes that the activation has: {"alpha", "beta"}. Throws Refused as above.
std::span<const std::string_view> fused_activation_numbers(NodeContext& context, std::string_view name);

// x times the normal distribution's part below x, or its approximation by tanh.
Expr gelu(NodeContext& context, const Expr& x, bool by_tanh);

}  // namespace headrace::onnx
