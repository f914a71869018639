// Normalizations as several Relay ops.
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

// Throws Refused if input `i` does not broadcast to x. `name` is the input's name in the ONNX specification.
void check_broadcasts_to(NodeContext& context, size_t i, std::string_view name, const Expr& x);

// Returns the outputs of LayerNormalization in the forms that nn.layer_norm does not have: with the mean and the
// inverse deviation, or with a scale or bias that differs along other axes than the normalized ones.
Exprs composed_layer_norm(NodeContext& context, size_t axis, double epsilon, DataType stash);

// Returns x over its norm, of order p (1 or 2), along an axis; 0 where the norm is 0.
Expr over_norm(NodeContext& context, const Expr& x, int64_t axis, int64_t p);

}  // namespace headrace::onnx
