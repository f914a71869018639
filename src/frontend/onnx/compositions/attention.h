// Parts of attention, for the operators of the standard and those of onnxruntime.
#pragma once

#include "frontend/onnx/node/node_context.h"

namespace headrace::onnx {

// Swaps the axes of heads and positions of x[batch, a, b, size].
Expr swap_heads(NodeContext& context, const Expr& x);

// Rotates the first `size` numbers of each head of x[batch, positions, heads, all] in pairs, by angles whose cosines
// and sines are [batch, positions, 1, size / 2]. The numbers of a pair are adjacent (interleaved), or size / 2 apart.
// Throws Refused if the numbers do not make pairs.
Expr rotate_heads(NodeContext& context, const Expr& x, const Expr& cos, const Expr& sin, int64_t size,
                  bool interleaved);

// Returns the causal mask, [rows, columns]: 0 if position i may attend to position j <= i + past, otherwise `masked`.
Expr causal_bias(NodeContext& context, int64_t rows, int64_t columns, int64_t past, DataType dtype, double masked);

}  // namespace headrace::onnx
