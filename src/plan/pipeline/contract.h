// From the problem as users state it (split.h) to the graph that the planner searches (split_graph.h).
#pragma once

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

struct ContractedProblem {
  SplitGraph graph;
  std::vector<int32_t> unit_of_node;  // -1 for a constant that some unit reads
};

// Checks the problem; then gives constants to the units that read them, joins colocated nodes and the nodes on paths
// between them, and numbers the units topologically. Throws what split_pipeline promises for one node or unit. Linear.
ContractedProblem contract_problem(const SplitProblem& problem);

}  // namespace headrace::plan
