// Measures the calls of a model, one by one, natively and by backends, for placement by cost.
#pragma once

#include "driver/compile.h"
#include "partition/cost_table.h"

namespace headrace::driver {

struct ProfileOptions {
  int rounds = 30;  // rounds per call; the best one counts
  // Called before each call with its index and the number of calls. May be empty.
  std::function<void(size_t index, size_t count)> progress = {};
};

// Compiles each call that placement by cost with these options would ask about as a program of its own, natively and by
// each backend that takes it, and runs these in turns on inputs of zeros with `compile.threads` threads, one if it is
// 0. Equal calls are measured once. Calls of unknown sizes, and regions that their backend refuses, are left out. The
// times hold what it takes to call a program, about the same everywhere. Throws as compile_to_memory and load::run.
partition::CostTable profile(const Model& model, const CompileOptions& compile, const ProfileOptions& options = {});

}  // namespace headrace::driver
