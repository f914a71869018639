// Times the choice of regions by Relay's passes: AnnotateTarget, MergeCompilerRegions and PartitionGraph.
#pragma once

#include "tools/headrace/verbs.h"

namespace headrace::bench {

struct RegionBenchOptions {
  int rounds = 3;
  int64_t ops = 100'000;  // about so many: whole blocks
};

// For stacked residual blocks and for stacked attention layers, where a compiler supports three ops of four, at a
// tenth of the size and at the whole: processor seconds of type inference and of each of the three steps, which infer
// no types; best and median of all three together, bytes that they allocate, regions, and the ratio of the best to that
// of the tenth. Each round takes a program that no round before has touched.
tools::Report measure_regions(const RegionBenchOptions& options);

}  // namespace headrace::bench
