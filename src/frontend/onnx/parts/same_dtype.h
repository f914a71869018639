#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Throws Refused if the inputs of the node are not all of one dtype.
void check_same_dtype(NodeContext& context);

}  // namespace headrace::onnx
