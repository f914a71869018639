// CanonicalizeOps: rewrites ops that are special cases of other ops to these.
//
//   nn.bias_add(x, b)              ->  add(x, expand_dims(b, axis=1, num_newaxis=2))      x of rank 4, axis 1
//   nn.bias_add(x, b, axis=-1)     ->  add(x, b)
//
// Later passes then see a single form of addition. Needs the types of the data. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule canonicalize_ops(const IRModule& module);

}  // namespace headrace::passes
