#include "graph/merge_regions.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "graph/contraction.h"
#include "graph/exact_regions.h"
#include "graph/quotient.h"

namespace headrace::graph {

namespace {

// Disjoint sets, each named by its lowest member.
class LowestSets {
 public:
  explicit LowestSets(size_t count) : parent_(count) {
    for (size_t i = 0; i < count; ++i) parent_[i] = static_cast<int32_t>(i);
  }
  int32_t find(int32_t i) {
    while (parent_[static_cast<size_t>(i)] != i) {
      int32_t& up = parent_[static_cast<size_t>(i)];
      i = up = parent_[static_cast<size_t>(up)];
    }
    return i;
  }
  void join(int32_t a, int32_t b) {
    a = find(a);
    b = find(b);
    parent_[static_cast<size_t>(std::max(a, b))] = std::min(a, b);
  }

 private:
  std::vector<int32_t> parent_;
};

using Colours = std::span<const int32_t>;

bool may_join(Colours colour, const Edge& edge) {
  const int32_t from = colour[static_cast<size_t>(edge.from)];
  return from != kNoColour && from == colour[static_cast<size_t>(edge.to)];
}

template <typename Visit>
void for_each_edge(const IndexGraph& graph, Visit&& visit) {
  for (int32_t node = 0; node < graph.num_nodes(); ++node) {
    for (const Edge& edge : graph.out(node)) visit(edge);
  }
}

// The step in depth along an edge: none inside of what may be one group, and none between nodes without a colour, which
// are groups of their own in an order that the edges give. So groups of one depth that edges connect have no cycle: a
// path that leaves such a group arrives deeper.
int32_t step_of(Colours colour, const Edge& edge) {
  const auto at = [&](int32_t node) { return colour[static_cast<size_t>(node)]; };
  return at(edge.from) == at(edge.to) ? 0 : 1;
}

// Depths from the beginning: every node as early as it can be.
std::vector<int32_t> early_depths(const IndexGraph& graph, Colours colour) {
  std::vector<int32_t> depth(colour.size(), 0);
  for_each_edge(graph, [&](const Edge& edge) {
    int32_t& to = depth[static_cast<size_t>(edge.to)];
    to = std::max(to, depth[static_cast<size_t>(edge.from)] + step_of(colour, edge));
  });
  return depth;
}

// Depths from the end: every node as late as it can be.
std::vector<int32_t> late_depths(const IndexGraph& graph, Colours colour) {
  std::vector<int32_t> depth(colour.size(), 0);
  for (int32_t node = graph.num_nodes(); node-- > 0;) {
    for (const Edge& edge : graph.out(node)) {
      int32_t& from = depth[static_cast<size_t>(node)];
      from = std::max(from, depth[static_cast<size_t>(edge.to)] + step_of(colour, edge));
    }
  }
  return depth;
}

std::vector<int32_t> named(LowestSets sets, size_t count) {
  std::vector<int32_t> group(count);
  for (size_t node = 0; node < count; ++node) group[node] = sets.find(static_cast<int32_t>(node));
  return group;
}

std::vector<int32_t> groups_of_one_depth(const IndexGraph& graph, Colours colour, const std::vector<int32_t>& depth) {
  LowestSets sets(colour.size());
  for_each_edge(graph, [&](const Edge& edge) {
    if (may_join(colour, edge) && depth[static_cast<size_t>(edge.from)] == depth[static_cast<size_t>(edge.to)])
      sets.join(edge.from, edge.to);
  });
  return named(std::move(sets), colour.size());
}

// Numbers groups that are named by their lowest members, by those members.
int32_t number_groups(std::vector<int32_t>& group) {
  int32_t next = 0;
  for (size_t node = 0; node < group.size(); ++node) {
    const auto first = static_cast<size_t>(group[node]);
    group[node] = first == node ? next++ : group[first];
  }
  return next;
}

// Joins groups along the edges between them, users in topological order, until no edge can be joined.
std::vector<int32_t> joined(const IndexGraph& graph, Colours colour, std::vector<int32_t> group) {
  std::vector<Edge> edges;
  for_each_edge(graph, [&](const Edge& edge) {
    if (may_join(colour, edge)) edges.push_back(edge);
  });
  std::sort(edges.begin(), edges.end(),
            [](const Edge& a, const Edge& b) { return std::pair(a.to, a.from) < std::pair(b.to, b.from); });
  const int32_t count = number_groups(group);
  Contraction contraction(graph, group, count);
  for (bool again = true; again;) {
    again = false;
    std::erase_if(edges, [&](const Edge& edge) {
      const int32_t from = contraction.find(group[static_cast<size_t>(edge.from)]);
      const int32_t to = contraction.find(group[static_cast<size_t>(edge.to)]);
      if (from == to) return true;
      const bool joins = contraction.try_join(from, to);
      again |= joins;
      return joins;
    });
  }
  LowestSets sets(colour.size());
  std::vector<int32_t> first(static_cast<size_t>(count), -1);
  for (size_t node = 0; node < group.size(); ++node) {
    int32_t& lowest = first[static_cast<size_t>(contraction.find(group[node]))];
    if (lowest < 0) lowest = static_cast<int32_t>(node);
    sets.join(lowest, static_cast<int32_t>(node));
  }
  return named(std::move(sets), colour.size());
}

// The number of the connected part of one colour that each node is in; kNoColour for nodes without a colour.
int32_t connected_parts(const IndexGraph& graph, Colours colour, std::vector<int32_t>& part) {
  LowestSets sets(colour.size());
  for_each_edge(graph, [&](const Edge& edge) {
    if (may_join(colour, edge)) sets.join(edge.from, edge.to);
  });
  part = named(std::move(sets), colour.size());
  std::vector<int32_t> number(colour.size(), -1);
  int32_t count = 0;
  for (size_t node = 0; node < colour.size(); ++node) {
    int32_t& of_part = number[static_cast<size_t>(part[node])];
    if (colour[node] != kNoColour && of_part < 0) of_part = count++;
    part[node] = colour[node] == kNoColour ? kNoColour : of_part;
  }
  return count;
}

// The nodes of a part along one path that leaves the part between any two of them: no two can be in one region.
class PartBound {
 public:
  PartBound(const IndexGraph& graph, const std::vector<int32_t>& part)
      : graph_(graph), part_(part), seen_(part.size(), -1), chain_(part.size(), 0) {}

  // `first` and `last` are the lowest and the highest node of the part.
  int32_t of(int32_t part, int32_t first, int32_t last) {
    int32_t most = 1;
    for (int32_t node = first; node <= last; ++node) {
      const bool inside = part_[static_cast<size_t>(node)] == part;
      if (inside) offer(node, part, 1);
      if (seen_[static_cast<size_t>(node)] != part) continue;
      const int32_t chain = chain_[static_cast<size_t>(node)];
      if (inside) most = std::max(most, chain);
      for (const Edge& edge : graph_.out(node)) {
        const bool leaves = inside && part_[static_cast<size_t>(edge.to)] != part;
        if (edge.to <= last) offer(edge.to, part, chain + (leaves ? 1 : 0));
      }
    }
    return most;
  }

 private:
  // The chain that arrives at a node: for a node outside, with the node of the part that comes next.
  void offer(int32_t node, int32_t part, int32_t chain) {
    int32_t& known = chain_[static_cast<size_t>(node)];
    known = seen_[static_cast<size_t>(node)] == part ? std::max(known, chain) : chain;
    seen_[static_cast<size_t>(node)] = part;
  }

  const IndexGraph& graph_;
  const std::vector<int32_t>& part_;
  std::vector<int32_t> seen_, chain_;
};

// The best of what is tried, the cheap first; nothing more is tried once the lower bound is met.
std::vector<int32_t> fewest_found(const IndexGraph& graph, Colours colour) {
  const int32_t bound = region_lower_bound(graph, colour);
  std::vector<int32_t> best;
  int32_t best_count = 0;
  const auto offer = [&](std::vector<int32_t> group) {
    const int32_t count = count_regions(group, colour);
    if (best.empty() || count < best_count) {
      best = std::move(group);
      best_count = count;
    }
    return best_count == bound;
  };
  const std::vector<int32_t> early = groups_of_one_depth(graph, colour, early_depths(graph, colour));
  if (offer(early)) return best;
  std::vector<int32_t> singles(colour.size());
  for (size_t node = 0; node < singles.size(); ++node) singles[node] = static_cast<int32_t>(node);
  if (offer(joined(graph, colour, singles)) || offer(joined(graph, colour, early))) return best;
  if (offer(joined(graph, colour, groups_of_one_depth(graph, colour, late_depths(graph, colour))))) return best;
  if (graph.num_nodes() <= RegionSearch::kExactNodes) offer(fewest_regions(graph, colour));
  return best;
}

}  // namespace

std::vector<int32_t> merge_regions(const IndexGraph& graph, Colours colour) {
  HEADRACE_CHECK(graph.is_topological() && colour.size() == static_cast<size_t>(graph.num_nodes()),
                 "regions of a graph that is not in topological order");
  std::vector<int32_t> best = fewest_found(graph, colour);
  const int32_t count = number_groups(best);
  check_acyclic_quotient(graph, best, count);
  return best;
}

int32_t count_regions(std::span<const int32_t> group, Colours colour) {
  std::vector<bool> seen(group.size(), false);  // groups are at most as many as nodes
  int32_t count = 0;
  for (size_t node = 0; node < group.size(); ++node) {
    const auto at = static_cast<size_t>(group[node]);
    if (colour[node] == kNoColour || seen[at]) continue;
    seen[at] = true;
    ++count;
  }
  return count;
}

int32_t region_lower_bound(const IndexGraph& graph, Colours colour) {
  constexpr int64_t kStepsEach = 64;
  std::vector<int32_t> part;
  const int32_t count = connected_parts(graph, colour, part);
  std::vector<int32_t> first(static_cast<size_t>(count), -1), last(static_cast<size_t>(count), -1);
  for (size_t node = 0; node < part.size(); ++node) {
    if (part[node] == kNoColour) continue;
    int32_t& begin = first[static_cast<size_t>(part[node])];
    if (begin < 0) begin = static_cast<int32_t>(node);
    last[static_cast<size_t>(part[node])] = static_cast<int32_t>(node);
  }
  PartBound bound(graph, part);
  int64_t steps_left = kStepsEach * (graph.num_nodes() + 1000);
  int32_t least = 0;
  for (int32_t i = 0; i < count; ++i) {
    const int32_t begin = first[static_cast<size_t>(i)], end = last[static_cast<size_t>(i)];
    steps_left -= end - begin + 1;
    least += steps_left < 0 ? 1 : bound.of(i, begin, end);
  }
  return least;
}

}  // namespace headrace::graph
