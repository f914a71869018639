#include "graph/index_graph.h"

#include <algorithm>

#include "base/error.h"

namespace headrace::graph {

IndexGraph::IndexGraph(int32_t num_nodes, std::span<const Edge> edges)
    : begins_(static_cast<size_t>(num_nodes) + 1, 0), edges_(edges.size()) {
  for (const Edge& edge : edges) {
    HEADRACE_CHECK(edge.from >= 0 && edge.from < num_nodes && edge.to >= 0 && edge.to < num_nodes,
                   "edge {} -> {} in a graph of {} nodes", edge.from, edge.to, num_nodes);
    ++begins_[static_cast<size_t>(edge.from) + 1];
  }
  for (size_t i = 1; i < begins_.size(); ++i) begins_[i] += begins_[i - 1];
  std::vector<size_t> next(begins_.begin(), begins_.end() - 1);
  for (const Edge& edge : edges) edges_[next[static_cast<size_t>(edge.from)]++] = edge;
}

bool IndexGraph::is_topological() const {
  return std::all_of(edges_.begin(), edges_.end(), [](const Edge& edge) { return edge.from < edge.to; });
}

}  // namespace headrace::graph
