// A forest that grows by leaves and answers, in O(log n) each: the nearest common ancestor of two nodes, and the
// largest weight on the way up to an ancestor.
//
// Each node has, beside its parent, one jump far up (E. Myers, "An applicative random-access stack", 1983): linear
// memory, whatever the shape of the forest.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace headrace::graph {

class AncestorTree {
 public:
  static constexpr int32_t kNone = -1;

  // Makes room for `num_nodes` nodes, none of which is in the forest yet.
  explicit AncestorTree(int32_t num_nodes) : nodes_(static_cast<size_t>(num_nodes)) {}
  // Adds `node` below `parent`, which is in the forest already, or kNone for a new root. `weight` is that of the step
  // from `node` to its parent.
  void add(int32_t node, int32_t parent, int32_t weight = 0);
  // Adds one node to the forest and returns its number, the count of nodes before it.
  int32_t add_leaf(int32_t parent);

  int32_t parent(int32_t node) const { return at(node).parent; }
  int32_t weight(int32_t node) const { return at(node).weight; }
  // Returns the nearest common ancestor; kNone when the two are in different trees. A node is its own ancestor.
  int32_t common_ancestor(int32_t a, int32_t b) const;
  // Returns the largest weight of the steps from `node` up to `ancestor`; `none` when they are the same node.
  int32_t max_weight_up_to(int32_t node, int32_t ancestor, int32_t none) const;

 private:
  struct Node {
    int32_t parent = kNone;
    int32_t jump = kNone;
    int32_t depth = 0;
    int32_t weight = 0;
    int32_t jump_weight = 0;  // the largest weight of the steps of the jump
  };
  const Node& at(int32_t node) const { return nodes_[static_cast<size_t>(node)]; }
  int32_t depth_of(int32_t node) const { return node == kNone ? 0 : at(node).depth; }
  int32_t lift(int32_t node, int32_t depth) const;
  std::vector<Node> nodes_;
};

}  // namespace headrace::graph
