// A period that no plan of a split can be shorter than.
#pragma once

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

// Returns the larger of two bounds: the least time of one unit over the most replicas, and the compute time of all
// units spread over all devices in any fractions. For unlike devices the second is the dual of a linear program, at the
// best of a fixed number of weights that are tried; each weight gives a bound. Transfers count as nothing. Linear.
int64_t lower_bound(const SplitGraph& graph);

}  // namespace headrace::plan
