// CanonicalizeOps: ops that are others in disguise are written as those.
//
//   nn.bias_add(x, b)              ->  add(x, expand_dims(b, axis=1, num_newaxis=2))      x of rank 4, axis 1
//   nn.bias_add(x, b, axis=-1)     ->  add(x, b)
//
// One form of addition for the passes after it. Needs the types of the data. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule canonicalize_ops(const IRModule& module);

}  // namespace headrace::passes
