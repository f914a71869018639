// Times the split of graphs into the stages of a pipeline (plan/pipeline/split.h).
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct SplitBenchOptions {
  int rounds = 3;
  int32_t nodes = 1'000'000;  // nodes in the stack of residual blocks
  int32_t devices = 4;
};

// For graphs shaped like networks over equal devices whose links have 12 GB/s: the best seconds, how the plan was
// found, its period and the gap to its lower bound as a share of the bound.
tools::Report measure_split(const SplitBenchOptions& options);

}  // namespace headrace::bench
