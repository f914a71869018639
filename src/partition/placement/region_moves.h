// Local search for plans (partition/placement/plan_search.h): gives whole regions, single native calls
// and single instances of patterns another label.
#pragma once

#include "partition/placement/cost_problem.h"

namespace headrace::partition {

// Moves regions that have borders which the label problem does not see, and what is beside them, to other labels, and
// takes or leaves instances of patterns. Takes a move, or several together, only if the plan costs less with the
// regions that it then has. Prices at most `plans` plans. Returns the cost. Deterministic.
int64_t move_regions(const CostProblem& problem, std::vector<int32_t>& labels, int64_t plans);

}  // namespace headrace::partition
