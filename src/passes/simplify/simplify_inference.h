// SimplifyInference: ops that only matter in training become arithmetic that later passes fold and fuse.
//
//   nn.batch_norm(x, g, b, m, v).0   ->   x * s + (b - m * s)   with s = g / sqrt(v + epsilon), along the axis
//   nn.dropout(x).0                  ->   x
//
// Needs types (the rank of x). Runs before FoldConstant, which computes s, and FoldScaleAxis, which moves it into
// weights. Preserves results up to rounding: the normalisation is one multiplication and one addition.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule simplify_inference(const IRModule& module);

}  // namespace headrace::passes
