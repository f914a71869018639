// Graphs whose nodes are the numbers 0 .. n-1, which the algorithms of graph/ take; callers decide what the numbers
// stand for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::graph {

struct Edge {
  int32_t from;
  int32_t to;
  int32_t weight = 0;  // for algorithms that say what it means; the others ignore it
};

// A directed graph that is fixed once built; several edges between two nodes are kept.
class IndexGraph {
 public:
  // Builds the graph. InternalError when an end of an edge is not one of 0 .. num_nodes-1.
  IndexGraph(int32_t num_nodes, std::span<const Edge> edges);

  int32_t num_nodes() const { return static_cast<int32_t>(begins_.size()) - 1; }
  // Returns the edges that leave `node`, in the order they were given.
  std::span<const Edge> out(int32_t node) const {
    const auto at = static_cast<size_t>(node);
    return {edges_.data() + begins_[at], begins_[at + 1] - begins_[at]};
  }
  // Returns whether every edge goes from a lower number to a higher one; a node with an edge to itself makes it false.
  bool is_topological() const;

 private:
  std::vector<size_t> begins_;
  std::vector<Edge> edges_;
};

}  // namespace headrace::graph
