// One call of a program: tensors in, fresh tensors out.
#pragma once

#include <span>
#include <vector>

#include "load/artifact.h"
#include "tensor/ndarray.h"

namespace headrace::load {

// Runs the executor's program on `inputs`, which it reads in place where they are dense and aligned. Gives new tensors,
// written in place; a bounded output has the shape that this run gave it. Threads that share an executor take turns.
// UserError: a wrong number, dtype, shape or device of inputs; a kernel that failed (with the op).
std::vector<NDArray> run(Executor& executor, std::span<const NDArray> inputs);

}  // namespace headrace::load
