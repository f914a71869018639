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

// Returns the outputs of LayerNormalization over the axes from `axis` on in the forms that nn.layer_norm does not have:
// with the mean and the inverse deviation, which have the dtype `stash`, or with a scale or bias that differs along
// other axes. Both broadcast to the data.
Exprs composed_layer_norm(NodeContext& context, size_t axis, double epsilon, DataType stash);

// Returns x over the sum of its magnitudes along an axis; 0 where the sum is 0.
Expr over_sum_of_magnitudes(NodeContext& context, const Expr& x, int64_t axis);

}  // namespace headrace::onnx
