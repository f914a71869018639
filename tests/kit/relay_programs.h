// Random relay programs, for properties that hold of all: texts read back, passes keep results.
#pragma once

#include "kit/random.h"
#include "relay/expr.h"

namespace headrace::kit {

struct ProgramSize {
  int steps = 25;            // an op or a motif of a few each
  bool control_flow = true;  // lets, functions, branches, calls of a global function
  bool shape_arithmetic = true;
  bool functional = false;  // data types, closures, recursion, references
  int64_t channels = 3;     // channels of convolutions' results; a number other than 3: of pictures that come in too
};

// Returns a module with `main` over two or three float32 tensors, typed. Its values stay of moderate size and depend
// smoothly on all that rounds: two ways to compute it that differ by rounding give nearly the same. A program of fewer
// steps with the same seed is a beginning of the one with more.
IRModule random_program(uint64_t seed, const ProgramSize& size = {});

// Tensors for the parameters of `main`, uniformly distributed in [-1, 1).
std::vector<NDArray> random_inputs(const IRModule& module, Random& random);

}  // namespace headrace::kit
