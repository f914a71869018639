#include "graph/ancestor_tree.h"

#include <algorithm>

namespace headrace::graph {

// Adds a node. A root has depth 1 and jumps to nowhere (depth 0). The jump of another node joins its parent's last two
// jumps when these are equally long, else it is the step to the parent.
void AncestorTree::add(int32_t node, int32_t parent, int32_t weight) {
  Node& n = nodes_[static_cast<size_t>(node)];
  n.parent = parent;
  n.weight = weight;
  n.depth = depth_of(parent) + 1;
  n.jump = parent;
  n.jump_weight = weight;
  if (parent == kNone || at(parent).jump == kNone) return;
  const Node& p = at(parent);
  const Node& q = at(p.jump);
  if (p.depth - q.depth == q.depth - depth_of(q.jump)) {
    n.jump = q.jump;
    n.jump_weight = std::max({weight, p.jump_weight, q.jump_weight});
  }
}

int32_t AncestorTree::add_leaf(int32_t parent) {
  const auto node = static_cast<int32_t>(nodes_.size());
  nodes_.emplace_back();
  add(node, parent);
  return node;
}

int32_t AncestorTree::lift(int32_t node, int32_t depth) const {
  while (at(node).depth > depth) node = depth_of(at(node).jump) >= depth ? at(node).jump : at(node).parent;
  return node;
}

int32_t AncestorTree::common_ancestor(int32_t a, int32_t b) const {
  if (at(a).depth > at(b).depth) std::swap(a, b);
  b = lift(b, at(a).depth);
  // Nodes of one depth have jumps of one length.
  while (a != b && a != kNone) {
    const bool far = at(a).jump != at(b).jump;
    a = far ? at(a).jump : at(a).parent;
    b = far ? at(b).jump : at(b).parent;
  }
  return a;
}

int32_t AncestorTree::max_weight_up_to(int32_t node, int32_t ancestor, int32_t none) const {
  int32_t result = none;
  while (node != ancestor) {
    const bool far = depth_of(at(node).jump) >= at(ancestor).depth;
    result = std::max(result, far ? at(node).jump_weight : at(node).weight);
    node = far ? at(node).jump : at(node).parent;
  }
  return result;
}

}  // namespace headrace::graph
