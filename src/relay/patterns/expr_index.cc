#include "relay/patterns/expr_index.h"

#include "graph/post_dominators.h"
#include "relay/visit.h"

namespace headrace::relay {

ExprIndex::ExprIndex(const Expr& root) {
  post_order(root, [&](const Expr& expr) {
    const auto id = static_cast<int32_t>(nodes_.size());
    ids_.emplace(expr.object(), id);
    nodes_.push_back(expr);
    users_.emplace_back();
    for (const Expr& child : children_of(expr)) {
      // A let's variable may occur in its own value: the variable is then met as the use's child first.
      users_[static_cast<size_t>(ids_.at(child.object()))].push_back(id);
    }
  });
}

const graph::AncestorTree& ExprIndex::tree() const {
  if (tree_) return *tree_;
  std::vector<graph::Edge> edges;
  for (size_t id = 0; id < users_.size(); ++id) {
    for (const int32_t user : users_[id]) edges.push_back({static_cast<int32_t>(id), user});
  }
  const graph::IndexGraph graph(static_cast<int32_t>(nodes_.size()), edges);
  tree_ = graph::post_dominators(graph, std::vector<bool>(nodes_.size()));
  return *tree_;
}

bool ExprIndex::dominates(const Expr& above, const Expr& below) const {
  const int32_t top = id_of(above), bottom = id_of(below);
  return top != bottom && tree().common_ancestor(top, bottom) == top;
}

}  // namespace headrace::relay
