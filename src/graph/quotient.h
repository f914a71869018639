// Quotients: the graph of the groups of a partition, where an edge between two nodes is an edge between their groups.
#pragma once

#include <optional>

#include "graph/index_graph.h"

namespace headrace::graph {

// The result of ordering the groups of a partition.
struct QuotientOrder {
  // The groups such that every edge between two of them leads from an earlier to a later one. Of several groups that
  // could come next, the lowest number does. Not complete when there is a cycle.
  std::vector<int32_t> order;
  // The groups of one cycle, in the direction of its edges and beginning with the lowest number; empty when the
  // quotient is acyclic, so that `order` is a proof of it.
  std::vector<int32_t> cycle;
};

// Orders the groups 0 .. num_groups-1; `group` has the group of each node. InternalError for a group outside of them.
// O(nodes + edges); no recursion.
QuotientOrder order_quotient(const IndexGraph& graph, std::span<const int32_t> group, int32_t num_groups);

// Throws an InternalError that names the groups of a cycle when the quotient has one. Call it on every partition before
// it is used.
void check_acyclic_quotient(const IndexGraph& graph, std::span<const int32_t> group, int32_t num_groups);

}  // namespace headrace::graph
