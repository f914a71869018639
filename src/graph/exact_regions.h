// The least number of regions (merge_regions.h) of a small graph.
#pragma once

#include "graph/index_graph.h"

namespace headrace::graph {

// Returns for each node its group, as merge_regions does, with the fewest coloured groups that there can be. For graphs
// of at most 16 nodes (InternalError); the time is exponential in their number.
std::vector<int32_t> fewest_regions(const IndexGraph& graph, std::span<const int32_t> colour);

}  // namespace headrace::graph
