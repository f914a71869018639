// Regions: few groups of nodes of one colour, each of which something computes as a whole.
//
// Nodes are joined along edges only: siblings that share an input stay apart, because joining them makes one wait for
// the inputs of the other, and no value stays inside of the region for it. No path may leave a region and come back, as
// a region computes when all its inputs are there; for all regions together this says that their quotient is acyclic.
#pragma once

#include "graph/index_graph.h"

namespace headrace::graph {

// The colour of a node that stays a group by itself and does not count.
inline constexpr int32_t kNoColour = -1;

struct RegionSearch {
  // Up to so many nodes the number of regions is the least possible.
  static constexpr int32_t kExactNodes = 12;
};

// Returns for each node its group, numbered by the first node of each: every group is one node without a colour, or
// nodes of one colour that are connected by edges among them; the quotient is acyclic. Looks for few coloured groups:
// the least number for up to RegionSearch::kExactNodes nodes, above that the best of some heuristics: one
// joins along every edge that can be joined (contraction.h) and the others begin with groups of one depth. The graph
// must be topological (InternalError). Near-linear.
std::vector<int32_t> merge_regions(const IndexGraph& graph, std::span<const int32_t> colour);

// Returns the number of groups that have a colour; the groups' numbers are below the number of nodes.
int32_t count_regions(std::span<const int32_t> group, std::span<const int32_t> colour);

// Returns a number of regions that no partition is below: for each connected part of one colour, the most nodes along a
// path that leaves the part between any two of them. Where that takes too long, 1 for the part. Near-linear.
int32_t region_lower_bound(const IndexGraph& graph, std::span<const int32_t> colour);

}  // namespace headrace::graph
