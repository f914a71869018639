// SimplifyInference: rewrites norms to arithmetic that later passes fold and fuse, and removes ops that have an effect
// in training only.
//
//   nn.batch_norm(x, g, b, m, v).0   ->   x * s + (b - m * s)   with s = g / sqrt(v + epsilon), along the axis
//   nn.dropout(x).0                  ->   x
//
// and, with `unpack_norms`, 1 / sqrt(...) and (-m) * s of a batch norm, as in Relay, where builds write rsqrt and -(m *
// s), and the norms that compute their statistics from the data:
//
//   nn.layer_norm(x, g, b)           ->   (x - mean(x)) / sqrt(variance(x, mean(x)) + epsilon) * g + b, over the axis
//   nn.instance_norm(x, g, b)        ->   the same, over all axes but the batch and the channels
//   nn.group_norm(x, g, b)           ->   the same, of x reshaped to [N, groups, C / groups, ...] and back
//   nn.l2_normalize(x)               ->   x / sqrt(maximum(sum(x * x), eps)), over the axes
//
// Norms of float16 and bfloat16 are cast to float32 and their results back, because the ops compute in float32, too.
// Which form is faster depends on the shape: group norm of (1, 64, 56, 56) takes 62 us as a kernel and 157 us as
// arithmetic, layer norm of (1, 128, 768) takes 45 us and 30 us (x86-64, 2 cores, float32). So builds do not unpack
// these norms. The pass unpacks them when it is run by its name, as Relay's does, unless the option
// "relay.SimplifyInference.unpack_norms" is false. Keeps a norm over no elements, which has no mean.
//
// Needs types (the rank of x). Runs before FoldConstant, which computes s, and before FoldScaleAxis, which moves s into
// weights. Preserves results up to rounding: batch norm becomes one multiplication and one addition. The new expression
// has the op's position in the order of evaluation.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule simplify_inference(const IRModule& module, bool unpack_norms = true);

}  // namespace headrace::passes
