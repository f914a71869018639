// Runs a program once, and returns its outputs in new tensors or in the caller's.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "load/artifact.h"
#include "tensor/ndarray.h"

namespace headrace::load {

// Runs the executor's program on `inputs`, and reads them in place if they are dense and aligned. Kernels write
// directly to the returned tensors; a bounded output has the shape that this run computed. Threads that share an
// executor take turns. Throws UserError for a wrong number, dtype, shape or device of inputs, and at the op of a kernel
// that fails.
std::vector<NDArray> run(executors::Executor& executor, std::span<const NDArray> inputs);

// As run. Output i is the tensor places[i] where there is one that kernels can write to: writable, dense, aligned, of
// the output's dtype and (of a bounded output, largest) shape, apart from all inputs that are read in place and all
// other places. Elsewhere it is a new tensor, and the place stays as it is. What such places hold after an error is not
// defined. Given a number for each of the executor's steps, it writes how long the step took there.
std::vector<NDArray> run_into(executors::Executor& executor, std::span<const NDArray> inputs,
                              std::span<const std::optional<NDArray>> places,
                              std::span<uint64_t> step_nanoseconds = {});

// Returns tensors of zeros of these types: inputs for a run that is only timed.
std::vector<NDArray> zeros_for(std::span<const artifact::TensorSpec> specs);

}  // namespace headrace::load
