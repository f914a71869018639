#pragma once

#include "frontend/onnx/parts/windows.h"
#include "ops/nn/pool.h"

namespace headrace::onnx {

// Returns the attributes of Relay's pools for these windows.
ops::PoolAttrs pool_attrs(const Windows& windows, bool ceil_mode);
// Returns the axes of input 0 after batch and channels.
Shape spatial_axes(NodeContext& context);

}  // namespace headrace::onnx
