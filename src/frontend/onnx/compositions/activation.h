// Activations as several Relay ops, by the formulas of the ONNX specification.
#pragma once

#include <span>

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Applies an activation that onnxruntime's optimiser moves into the operator before it: "Relu", "LeakyRelu", ... The
// numbers are those of the activation's own attributes, in the order of fused_activation_numbers(). Throws Refused for
// a name that is not supported, and for too few numbers.
Expr fused_activation(NodeContext& context, const Expr& x, std::string_view name, std::span<const double> numbers);
// Returns the names of the attributes that the activation has: {"alpha", "beta"}. Throws Refused for a name that is not
// supported.
std::span<const std::string_view> fused_activation_numbers(NodeContext& context, std::string_view name);

// x times the normal distribution's part below x, or its approximation by tanh.
Expr gelu(NodeContext& context, const Expr& x, bool by_tanh);

// Multiplies the elements of x below 0 by a slope that broadcasts to x: PRelu in the forms that nn.prelu, which has one
// slope for each index of one axis, cannot express.
Expr sloped(NodeContext& context, const Expr& x, const Expr& slope);

// Returns min(max(x, low), high): Clip with bounds that clip, which has numbers for them, cannot express. A bound may
// be null.
Expr bounded(NodeContext& context, const Expr& x, const Expr& low, const Expr& high);

}  // namespace headrace::onnx
