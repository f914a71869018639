// Builds the normalisations of ONNX LayerNormalization and RMSNormalization, for the operators that contain them.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

struct Normalized {
  Expr result, mean, inverse_deviation;  // `mean` is null for the root mean square
};

// Returns (x - mean) / sqrt(variance + epsilon) over `axes`, and its parts, whose axes have the size 1. `x` is widened.
Normalized normalize(NodeContext& context, const Expr& x, const Shape& axes, double epsilon);
// Returns x / sqrt(mean of squares + epsilon) over `axes`. `x` is widened.
Normalized normalize_by_root(NodeContext& context, const Expr& x, const Shape& axes, double epsilon);

}  // namespace headrace::onnx
