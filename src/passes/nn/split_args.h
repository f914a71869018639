// SplitArgs: a concatenation or stack of many tensors becomes one of several of fewer.
//
//   concatenate((%a, %b, %c, %d, %e), axis=1)      max_function_args 3
//     ->  concatenate((concatenate((%a, %b), axis=1), concatenate((%c, %d), axis=1), %e), axis=1)
//
// For devices whose kernels take a bounded number of arguments; the result counts as one of them. Each part is as long
// as a kernel takes, and so is what joins them. A limit of 0 is none; a tuple that is not a tuple literal stays. Needs
// no types. Preserves results to the last bit.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// Reads "relay.SplitArgs.max_function_args" from the context's configuration; 0 without it. UserError when it is not a
// number, or below 3 and not 0: two inputs and a result are the least.
int64_t max_function_args(const pass::PassContext& context);

IRModule split_args(const IRModule& module, int64_t max_function_args);

}  // namespace headrace::passes
