#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns where x is infinite and below 0, or above it: IsInf of one sign.
Expr infinite_of_sign(NodeContext& context, const Expr& x, bool is_negative);

}  // namespace headrace::onnx
