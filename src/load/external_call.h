// Calling a PackedFunc where a graph program calls a kernel.
#pragma once

#include "executors/graph/graph_runner.h"
#include "object/function.h"

namespace headrace::load {

// Calls `function` destination-passing, with one DLTensor* per argument (inputs, then outputs). An error that it raises
// is what the call gives; the thread keeps none. `function` outlives the call's users.
executors::ExternalCall external_call(const PackedFunc& function);

}  // namespace headrace::load
