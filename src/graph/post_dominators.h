// Post-dominators of an acyclic graph: where all ways from a node meet again.
#pragma once

#include "graph/ancestor_tree.h"
#include "graph/index_graph.h"

namespace headrace::graph {

// Returns the forest in which parent(n) is the immediate post-dominator of n: the first node other than n that lies on
// every path from n to an end. An end is a node without outgoing edges, or with is_exit[n]. A node has no parent when
// it is an end, or when its paths do not meet. weight(n) is the largest weight of the edges on the paths from n to
// parent(n); 0 when there is no parent. The graph must be topological (InternalError). O(edges * log nodes).
AncestorTree post_dominators(const IndexGraph& graph, const std::vector<bool>& is_exit);

}  // namespace headrace::graph
