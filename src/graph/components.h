// Strongly connected components (R. Tarjan, "Depth-first search and linear graph algorithms", 1972).
#pragma once

#include "graph/index_graph.h"

namespace headrace::graph {

// Returns the strong components, each after all those that its edges lead to; the nodes of each in ascending order.
// Linear; its stack use does not depend on the graph.
std::vector<std::vector<int32_t>> strong_components(const IndexGraph& graph);

}  // namespace headrace::graph
