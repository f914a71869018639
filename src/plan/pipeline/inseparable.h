// Units that no short plan gives to different stages.
#pragma once

#include <optional>

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

// Groups of units, each in one stage of every plan that is shorter than some period.
struct MergedGraph {
  SplitGraph graph;            // its units are the groups; memory is that of group_units, which may be too little
  std::vector<int32_t> group;  // by unit of the graph that was merged
};

// Merges units that every plan with a period below `period_ns` puts into one stage: between any two stages that had
// them, tensors would take too long. Memory counts for nothing, so that other plans may remain. Returns nothing when no
// plan has a shorter period, which merging shows when what must share a stage takes as long. Stops after about
// `max_steps` arcs of networks, with what is merged by then; subtracts from it what it took.
std::optional<MergedGraph> merge_inseparable(const SplitGraph& graph, int64_t period_ns, int64_t& max_steps);

}  // namespace headrace::plan
