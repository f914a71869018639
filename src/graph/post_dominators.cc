#include "graph/post_dominators.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace headrace::graph {

AncestorTree post_dominators(const IndexGraph& graph, const std::vector<bool>& is_exit) {
  constexpr int32_t kNone = AncestorTree::kNone;
  constexpr int32_t kNoWeight = std::numeric_limits<int32_t>::min();
  HEADRACE_CHECK(graph.is_topological(), "the nodes are not numbered in topological order");
  AncestorTree tree(graph.num_nodes());
  for (int32_t node = graph.num_nodes() - 1; node >= 0; --node) {
    const auto out = graph.out(node);
    int32_t parent = out.empty() || is_exit[static_cast<size_t>(node)] ? kNone : out[0].to;
    for (size_t i = 1; i < out.size() && parent != kNone; ++i) parent = tree.common_ancestor(parent, out[i].to);
    int32_t weight = parent == kNone ? 0 : kNoWeight;
    for (size_t i = 0; i < out.size() && parent != kNone; ++i)
      weight = std::max({weight, out[i].weight, tree.max_weight_up_to(out[i].to, parent, kNoWeight)});
    tree.add(node, parent, weight);
  }
  return tree;
}

}  // namespace headrace::graph
