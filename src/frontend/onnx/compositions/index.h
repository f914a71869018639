#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns indices below 0, which count from the end of an axis of `size` elements, counted from its begin, and other
// indices as they are.
Expr counted_from_begin(NodeContext& context, const Expr& indices, int64_t size);

}  // namespace headrace::onnx
