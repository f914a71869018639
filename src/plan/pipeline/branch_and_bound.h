// Branch and bound over the stages of single units: a lower bound for graphs with too many downsets to list.
#pragma once

#include <functional>

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

// Calls found(stages) for a plan that a bound comes upon: a stage for each unit, where some stages may have no units.
// It returns the goal from then on, which counts when it is lower.
using VisitStages = std::function<int64_t(const std::vector<int32_t>&)>;

// Returns a period that no plan undercuts, the goal at most; the least one known after about `max_steps` arcs of
// networks, from which it subtracts what it took. Returns 0 for stages with replicas, for fewer than 2 or more than
// kMaxCutStages devices, for more than kMaxBranchUnits units and for very long times. Memory counts for nothing.
inline constexpr int32_t kMaxBranchUnits = 4096;
int64_t bound_by_branches(const SplitGraph& graph, int64_t goal_ns, int64_t& max_steps, const VisitStages& found);

}  // namespace headrace::plan
