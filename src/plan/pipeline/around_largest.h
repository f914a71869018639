// Proof that no plan is shorter than some period, by what can come before and after the stage of the largest unit.
#pragma once

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

// Returns whether all plans with a period below `period_ns` are refuted: for every downset that could have been
// computed before the stage of the unit with most compute, this stage and all later ones take too long. Returns false
// when a plan may exist, for stages with replicas, for more than `max_downsets` downsets before the stage, and after
// about `max_steps` arcs of networks; subtracts from it what it took. Memory counts for nothing.
bool is_refuted_around_largest(const SplitGraph& graph, int64_t period_ns, int32_t max_downsets, int64_t& max_steps);

}  // namespace headrace::plan
