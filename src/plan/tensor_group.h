// Makes a parameter of a group for each tensor that it takes. Private to plan/.
#pragma once

#include "relay/expr.h"

namespace headrace::plan {

// Returns `group`, whose parameters may be tuples, as a function with a parameter for each tensor of them, in order.
// Items of those tuples become the parameters themselves.
relay::Function with_tensor_parameters(const relay::Function& group);

}  // namespace headrace::plan
