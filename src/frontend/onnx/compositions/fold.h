#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Applies a binary op to all inputs of the node, from the left; one input alone is the result. With `widens` 16-bit
// numbers are computed in float32, which is then the dtype of the result.
Expr fold(NodeContext& context, std::string_view op, bool widens);

}  // namespace headrace::onnx
