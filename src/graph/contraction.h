// A directed acyclic graph whose nodes are joined one pair after another, while it stays acyclic.
#pragma once

#include "graph/index_graph.h"

namespace headrace::graph {

// Keeps the groups of joined nodes in a topological order. Whether a join would make a cycle, and the order after it,
// take a search between the places of the two groups only, as in D. Pearce and P. Kelly, "A dynamic topological sort
// algorithm for directed acyclic graphs", 2007. The searches share a budget, so that all joins together take time in
// proportion to the graph; where it is spent, further joins are refused, which costs groups but no correctness.
class Contraction {
 public:
  // Begins with the given groups, numbered 0 .. num_groups-1. The quotient must be acyclic (InternalError).
  Contraction(const IndexGraph& graph, std::span<const int32_t> group, int32_t num_groups);

  // Returns the group that holds the group `group` of the beginning.
  int32_t find(int32_t group);
  // Joins two groups between which there is an edge from `a` to `b`. Returns false, and changes nothing, when a path
  // through another group leads from `a` to `b`, or when the budget is spent.
  bool try_join(int32_t a, int32_t b);

 private:
  struct Group {
    int32_t parent;
    int32_t place = 0;           // in the topological order
    uint32_t seen = 0;           // the search that reached the group
    std::vector<int32_t> out{};  // neighbours as they were when their edges were added; find() gives today's
    std::vector<int32_t> in{};
  };
  Group& at(int32_t group) { return groups_[static_cast<size_t>(group)]; }
  std::vector<int32_t>& neighbours(int32_t group, bool forward);
  bool collect(int32_t start, int32_t other, bool forward, std::vector<int32_t>& found);
  void reorder(int32_t a, int32_t b, std::vector<int32_t>& before, std::vector<int32_t>& behind);

  std::vector<Group> groups_;
  uint32_t searches_ = 0;
  int64_t budget_;
};

}  // namespace headrace::graph
