#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns the outputs of Dropout in training: each element of input 0 is dropped with probability `ratio`, and the
// others are divided by what is left of 1; the mask says which are kept.
Exprs dropped(NodeContext& context, double ratio);

}  // namespace headrace::onnx
