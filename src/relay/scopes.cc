#include "relay/scopes.h"

#include "graph/ancestor_tree.h"
#include "relay/children.h"

namespace headrace::relay {

bool is_atomic(const ExprNode& node) {
  return node.is_instance<VarNode>() || node.is_instance<ConstantNode>() || node.is_instance<GlobalVarNode>() ||
         node.is_instance<OpNode>() || node.is_instance<ConstructorNode>();
}

namespace {

class ScopeFinder {
 public:
  ScopeFinder(const Expr& root, bool places_constants) : places_constants_(places_constants) {
    out_.scopes.push_back({0, {}});
    tree_.add_leaf(graph::AncestorTree::kNone);
    std::vector<Expr> order;
    post_order(root, [&](const Expr& node) {
      if (!is_placed(*node)) return;
      order.push_back(node);
      out_.placements.try_emplace(node.object(), {});
    });
    tail(root, 0);
    // Users before their operands: when a node's turn comes, all its uses are known.
    for (size_t i = order.size(); i > 0; --i) place(order[i - 1]);
    int next = 0;
    for (const Expr& node : order) {
      Scopes::Placement& placement = *out_.placements.find(node.object());
      if (placement.number < 0) continue;
      placement.number = next++;
      out_.scopes[static_cast<size_t>(placement.scope)].numbered.push_back(node);
    }
  }
  Scopes take() { return std::move(out_); }

 private:
  bool is_placed(const ExprNode& node) const {
    return !is_atomic(node) || (places_constants_ && node.is_instance<ConstantNode>());
  }

  int open(int parent) {
    out_.scopes.push_back({parent, {}});
    return tree_.add_leaf(parent);
  }

  Scopes::Placement* use(const ExprNode& node, int where) {
    Scopes::Placement* placement = out_.placements.find(&node);
    if (placement == nullptr) return nullptr;
    const bool is_first = placement->uses == 0 || placement->scope == where;
    placement->scope = is_first ? where : tree_.common_ancestor(placement->scope, where);
    ++placement->uses;
    return placement;
  }
  void tail(const Expr& expr, int where) {
    if (auto* placement = use(*expr, where)) ++placement->tail_uses;
  }
  void value(const Expr& expr, int where) {
    if (auto* placement = use(*expr, where)) {
      ++placement->tail_uses;
      placement->is_value = true;
    }
  }

  void place_let(const LetNode& let, Scopes::Placement placement, const Object* key) {
    const bool is_flat = placement.number < 0 && !placement.is_value;
    const int base = is_flat ? placement.scope : open(placement.scope);
    const int body = open(base);
    out_.placements.find(key)->inner = is_flat ? body : base;
    value(let.value, base);
    tail(let.body, body);
  }

  void place(const Expr& node) {
    Scopes::Placement& entry = *out_.placements.find(node.object());
    const bool is_inline = entry.uses == 1 && entry.tail_uses == 1;
    entry.number = is_inline ? -1 : 0;
    const int where = entry.scope;
    entry.inner = static_cast<int>(out_.scopes.size());
    if (const auto* let = node.as<LetNode>()) {
      place_let(*let, entry, node.object());
    } else if (const auto* function = node.as<FunctionNode>()) {
      tail(function->body, open(where));
    } else if (const auto* branch = node.as<IfNode>()) {
      use(*branch->cond, where);
      const int first = open(where);
      const int second = open(where);
      tail(branch->true_branch, first);
      tail(branch->false_branch, second);
    } else if (const auto* match = node.as<MatchNode>()) {
      use(*match->data, where);
      for (const Clause& clause : match->clauses) tail(clause->rhs, open(where));
    } else {
      for_each_child(*node, [&](const ExprNode* child) { use(*child, where); });
    }
  }

  bool places_constants_;
  Scopes out_;
  graph::AncestorTree tree_{0};  // the scopes, by their numbers
};

}  // namespace

Scopes find_scopes(const Expr& root, bool places_constants) { return ScopeFinder(root, places_constants).take(); }

namespace {

// For each scope the innermost one around it, or itself, that is among the first `count_of(node)` which a node opens.
template <typename CountOf>
std::vector<int> innermost(const Expr& root, const Scopes& scopes, CountOf&& count_of) {
  std::vector<bool> starts(scopes.scopes.size(), false);
  post_order(root, [&](const Expr& node) {
    const size_t count = count_of(node);
    for (size_t i = 0; i < count; ++i) starts[static_cast<size_t>(scopes.at(node).inner) + i] = true;
  });
  std::vector<int> found(scopes.scopes.size(), 0);
  for (size_t i = 1; i < found.size(); ++i)
    found[i] = starts[i] ? static_cast<int>(i) : found[static_cast<size_t>(scopes.scopes[i].parent)];
  return found;
}

}  // namespace

std::vector<int> find_blocks(const Expr& root, const Scopes& scopes) {
  return innermost(root, scopes, [](const Expr& node) -> size_t {
    if (node.is<FunctionNode>()) return 1;
    if (node.is<IfNode>()) return 2;
    const auto* match = node.as<MatchNode>();
    return match == nullptr ? 0 : match->clauses.size();
  });
}

std::vector<int> find_function_scopes(const Expr& root, const Scopes& scopes) {
  return innermost(root, scopes, [](const Expr& node) -> size_t { return node.is<FunctionNode>() ? 1 : 0; });
}

}  // namespace headrace::relay
