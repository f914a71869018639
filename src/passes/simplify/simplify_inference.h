// SimplifyInference: norms, and ops that only matter in training, become arithmetic that later passes fold and fuse.
//
//   nn.batch_norm(x, g, b, m, v).0   ->   x * s + (b - m * s)   with s = g / sqrt(v + epsilon), along the axis
//   nn.dropout(x).0                  ->   x
//
// and, with `unpack_norms`, those that compute their statistics of the data itself:
//
//   nn.layer_norm(x, g, b)           ->   (x - mean(x)) / sqrt(variance(x, mean(x)) + epsilon) * g + b, over the axis
//   nn.instance_norm(x, g, b)        ->   the same, over all axes but the batch and the channels
//   nn.group_norm(x, g, b)           ->   the same, of x reshaped to [N, groups, C / groups, ...] and back
//   nn.l2_normalize(x)               ->   x / sqrt(maximum(sum(x * x), eps)), over the axes
//
// Norms of float16 and bfloat16 are cast to float32 and their results back, because the ops compute in float32 too.
// Which is faster, arithmetic or the op's kernel, depends on the shape: of (1, 64, 56, 56) group norm takes 62 us as a
// kernel and 157 us as arithmetic, of (1, 128, 768) layer norm 45 and 30 us (x86-64, 2 cores, float32). So builds leave
// these norms to their kernels; the pass by its name unpacks them, as Relay's does, unless the option
// "relay.SimplifyInference.unpack_norms" says else. A norm of no elements stays: it has no mean.
//
// Needs types (the rank of x). Runs before FoldConstant, which computes s, and FoldScaleAxis, which moves it into
// weights. Preserves results up to rounding: batch norm is one multiplication and one addition. What it makes stands
// where the op stood.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule simplify_inference(const IRModule& module, bool unpack_norms = true);

}  // namespace headrace::passes
