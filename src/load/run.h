// Runs a program once, and returns its outputs in new tensors.
#pragma once

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

// Returns tensors of zeros of these types: inputs for a run that is only timed.
std::vector<NDArray> zeros_for(std::span<const artifact::TensorSpec> specs);

}  // namespace headrace::load
