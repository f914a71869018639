// Forms of ONNX Pad that nn.pad does not have.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns the data without the elements that negative pads remove, which then become 0. The pads are all begins, then
// all ends.
Expr cropped(NodeContext& context, Expr data, Shape& pads);

// Pads by repeating the data: before and after each axis, the axis goes on with its other end.
Expr pad_wrapped(NodeContext& context, Expr data, const Shape& pads);

}  // namespace headrace::onnx
