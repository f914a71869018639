#pragma once

#include <functional>

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Reads the axis of Softmax, LogSoftmax or Hardmax, and returns the result of `along` in the shape of input 0. `along`
// is called with a floating-point tensor and its axis. Up to opset 12 the axes from attribute `axis` (1) on count as
// one; later opsets take `axis` (-1) alone.
Exprs along_axis(NodeContext& context, const std::function<Expr(const Expr& x, int64_t axis)>& along);

}  // namespace headrace::onnx
