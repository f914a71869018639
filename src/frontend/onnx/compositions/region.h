// Grids and boxes in the forms that no op of Relay has.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Returns the places of AffineGrid, [N, spatial sizes..., 2 or 3], for theta [N, 2, 3] or [N, 3, 4]. image.affine_grid
// has planes whose corners are aligned alone.
Expr affine_grid(NodeContext& context, const Expr& theta, const Shape& sizes, bool align_corners);

// Returns the corners of boxes that are given by center and size.
Expr corners_of(NodeContext& context, const Expr& boxes);

}  // namespace headrace::onnx
