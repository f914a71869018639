// Post-dominators of an acyclic graph: where all ways from a node meet again.
#pragma once

#include "graph/ancestor_tree.h"
#include "graph/index_graph.h"

namespace headrace::graph {

// The forest in which parent(n) is the immediate post-dominator of n: the first node other than n that every way from n
// to an end passes. An end is a node without an edge out, or with is_exit[n]. A node has no parent when it is an end,
// or when its ways meet nowhere. weight(n) is the largest weight of the edges on the ways from n to parent(n); 0 when
// there is no parent. The graph must be topological (InternalError). O(edges * log nodes).
AncestorTree post_dominators(const IndexGraph& graph, const std::vector<bool>& is_exit);

}  // namespace headrace::graph
