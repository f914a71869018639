#include "graph/quotient.h"

#include <algorithm>

#include "base/error.h"
#include "graph/number_set.h"

namespace headrace::graph {

namespace {

// Returns the graph of the groups, without edges inside of a group.
IndexGraph make_quotient(const IndexGraph& graph, std::span<const int32_t> group, int32_t num_groups) {
  HEADRACE_CHECK(group.size() == static_cast<size_t>(graph.num_nodes()), "{} groups for {} nodes", group.size(),
                 graph.num_nodes());
  size_t num_edges = 0;
  for (int32_t node = 0; node < graph.num_nodes(); ++node) num_edges += graph.out(node).size();
  std::vector<Edge> edges;
  edges.reserve(num_edges);
  for (int32_t node = 0; node < graph.num_nodes(); ++node) {
    const int32_t from = group[static_cast<size_t>(node)];
    HEADRACE_CHECK(from >= 0 && from < num_groups, "node {} is in group {} of {}", node, from, num_groups);
    for (const Edge& edge : graph.out(node)) {
      const int32_t to = group[static_cast<size_t>(edge.to)];
      if (to != from) edges.push_back({from, to});
    }
  }
  return IndexGraph(num_groups, edges);
}

// Returns a cycle among the groups that have `waiting` edges left. Each of them has a predecessor among them, so that a
// walk against the edges comes back to a group that it has seen.
std::vector<int32_t> find_cycle(const IndexGraph& quotient, const std::vector<int32_t>& waiting) {
  std::vector<int32_t> before(waiting.size(), -1);
  int32_t at = -1;
  for (int32_t from = 0; from < quotient.num_nodes(); ++from) {
    if (waiting[static_cast<size_t>(from)] == 0) continue;
    for (const Edge& edge : quotient.out(from)) {
      if (waiting[static_cast<size_t>(edge.to)] > 0) before[static_cast<size_t>(at = edge.to)] = from;
    }
  }
  std::vector<bool> seen(waiting.size(), false);
  for (; !seen[static_cast<size_t>(at)]; at = before[static_cast<size_t>(at)]) seen[static_cast<size_t>(at)] = true;
  std::vector<int32_t> cycle;
  for (const int32_t first = at; cycle.empty() || at != first; at = before[static_cast<size_t>(at)])
    cycle.push_back(at);
  std::reverse(cycle.begin(), cycle.end());
  std::rotate(cycle.begin(), std::min_element(cycle.begin(), cycle.end()), cycle.end());
  return cycle;
}

}  // namespace

QuotientOrder order_quotient(const IndexGraph& graph, std::span<const int32_t> group, int32_t num_groups) {
  const IndexGraph quotient = make_quotient(graph, group, num_groups);
  std::vector<int32_t> waiting(static_cast<size_t>(num_groups), 0);
  for (int32_t from = 0; from < num_groups; ++from) {
    for (const Edge& edge : quotient.out(from)) ++waiting[static_cast<size_t>(edge.to)];
  }
  NumberSet ready(num_groups);
  for (int32_t at = 0; at < num_groups; ++at) {
    if (waiting[static_cast<size_t>(at)] == 0) ready.insert(at);
  }
  QuotientOrder result;
  result.order.reserve(static_cast<size_t>(num_groups));
  while (!ready.empty()) {
    const int32_t from = ready.take_lowest();
    result.order.push_back(from);
    for (const Edge& edge : quotient.out(from)) {
      if (--waiting[static_cast<size_t>(edge.to)] == 0) ready.insert(edge.to);
    }
  }
  if (result.order.size() != static_cast<size_t>(num_groups)) result.cycle = find_cycle(quotient, waiting);
  return result;
}

void check_acyclic_quotient(const IndexGraph& graph, std::span<const int32_t> group, int32_t num_groups) {
  const QuotientOrder order = order_quotient(graph, group, num_groups);
  HEADRACE_CHECK(order.cycle.empty(), "the groups {} form a cycle", fmt::join(order.cycle, " -> "));
}

}  // namespace headrace::graph
