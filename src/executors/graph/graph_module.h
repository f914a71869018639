// The graph executor as a runtime::Module, with the functions that Relay users know.
#pragma once

#include <memory>

#include "executors/executor.h"
#include "runtime/module.h"

namespace headrace::executors {

// Makes a module with these functions (`key` is an input's name or index, tensors are NDArray or DLTensor*):
//   set_input(key, tensor), set_input_zero_copy(key, tensor), set_output_zero_copy(index, tensor)
//     set_input of a parameter that was bound when the program was compiled changes nothing: UserError unless the
//     tensor is the one that was bound
//   run()
//   get_output(index) -> NDArray, a view that the next run overwrites; get_output(index, tensor) copies into it.
//     UserError until a run has succeeded since the output's memory was set
//   get_input(key) -> NDArray, a view of what the program reads; until the input was set its elements mean nothing
//   get_num_inputs(), get_num_outputs() -> int; get_input_index(name) -> int, -1 when there is none
//   get_bound_params() -> the names of those that were bound
//   get_input_info(), get_output_info() -> {"shape": {name: shape}, "dtype": {name: str}}
// Threads may call them concurrently; each call is atomic, but the sequence of set_input, run and get_output is not,
// and belongs to one thread at a time. NDArrays that were set without a copy are kept alive. Errors are UserErrors that
// name the tensor or the failing op.
runtime::Module make_graph_module(std::shared_ptr<Executor> executor);

}  // namespace headrace::executors
