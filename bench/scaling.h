// How the time of what walks programs grows with the program.
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct ScalingOptions {
  int rounds = 3;
  int64_t chain = 100'000;   // ops in a row
  int64_t nesting = 10'000;  // lets, tuples, functions, branches in each other
};

// For programs of two sizes, one four times the other: seconds to make, visit, rewrite, print, parse, compare, hash,
// write and read as JSON, infer and destroy, the best of `rounds`, and what the larger takes by what the smaller takes.
// Linear work has a ratio of about 4 and what the caches add; quadratic work has 16.
tools::Report measure_scaling(const ScalingOptions& options);

}  // namespace headrace::bench
