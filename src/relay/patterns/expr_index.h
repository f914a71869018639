// An expression as a graph of numbers: its nodes in post-order, who uses each, and where all uses of a node meet again.
// Inner header of relay.
#pragma once

#include <optional>
#include <unordered_map>

#include "graph/ancestor_tree.h"
#include "relay/expr.h"

namespace headrace::relay {

class ExprIndex {
 public:
  // Linear in the expression; enters all functions.
  explicit ExprIndex(const Expr& root);

  const std::vector<Expr>& nodes() const { return nodes_; }  // operands first
  int32_t id_of(const Expr& expr) const { return ids_.at(expr.object()); }
  bool contains(const Expr& expr) const { return ids_.contains(expr.object()); }
  const std::vector<int32_t>& users_of(int32_t id) const { return users_[static_cast<size_t>(id)]; }
  // Returns whether every path from `below` to the root goes through `above`, another node. The first call builds the
  // tree of dominators, in O(n log n).
  bool dominates(const Expr& above, const Expr& below) const;

 private:
  const graph::AncestorTree& tree() const;

  std::vector<Expr> nodes_;
  std::unordered_map<const Object*, int32_t> ids_;
  std::vector<std::vector<int32_t>> users_;
  mutable std::optional<graph::AncestorTree> tree_;
};

}  // namespace headrace::relay
