// Lets a graph program call a PackedFunc in place of a kernel.
#pragma once

#include "executors/graph/graph_executor.h"
#include "object/function.h"

namespace headrace::load {

// Makes the call, which calls `function` in destination-passing style with one DLTensor* for each argument (inputs,
// then outputs). It returns the function's error, and does not leave it as the thread's stored error. `function` must
// outlive the users of the call.
executors::ExternalFunction external_call(const PackedFunc& function);

}  // namespace headrace::load
