// QnnCanonicalize: replaces quantized ops by the plain ops that compute them.
//
//   qnn.requantize(x, 0.5f, 3, 0.25f, -1)   ->   %0 = fixed_point_multiply(subtract(cast(x), 3), ...);
//                                                cast(clip(add(%0, -1)), dtype="int8")
//
// The expression is a fact of the op (ops::kPlainForm). qnn.quantize, qnn.dequantize and qnn.dense stay, because they
// have kernels. Needs types. Runs in builds, after placement, because a backend looks for the quantized op, and before
// FoldConstant, which computes what depends on constant scales, weights and zero points alone. Preserves results to the
// last bit.
#pragma once

#include "ir/module.h"

namespace headrace::passes {

IRModule qnn_canonicalize(const IRModule& module);

}  // namespace headrace::passes
