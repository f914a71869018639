#include "relay/unique_binders.h"

#include <map>
#include <optional>
#include <unordered_set>

#include "relay/verify.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

// The children of a node, apart from the variables it binds. A scope is the variables of a let, a list of parameters or
// a pattern.
struct Part {
  Expr child;
  int scope = -1;  // the one that it stands in; -1: that of the node
};
struct ScopeShape {
  std::vector<std::vector<Var>> scopes;
  std::vector<Part> parts;
};

ScopeShape scope_shape_of(const Expr& expr) {
  ScopeShape shape;
  if (const auto* function = expr.as<FunctionNode>()) {
    shape.scopes = {function->params.to_vector()};
    shape.parts = {{function->body, 0}};
  } else if (const auto* let = expr.as<LetNode>()) {
    // A function may call itself by the variable that it is bound to.
    shape.scopes = {{let->var}};
    shape.parts = {{let->value, let->value.is<FunctionNode>() ? 0 : -1}, {let->body, 0}};
  } else if (const auto* match = expr.as<MatchNode>()) {
    shape.parts = {{match->data}};
    for (const Clause& clause : match->clauses) {
      shape.parts.push_back({clause->rhs, static_cast<int>(shape.scopes.size())});
      shape.scopes.push_back(pattern_vars(clause->lhs));
    }
  } else {
    for (const Expr& child : children_of(expr)) shape.parts.push_back({child});
  }
  return shape;
}

// Returns the children of a node, in the order of children_of, from its rewritten parts and variables.
std::vector<Expr> join(const Expr& expr, const ScopeShape& shape, const std::vector<Expr>& parts,
                       const std::vector<std::vector<Var>>& scopes) {
  if (expr.is<LetNode>()) return {parts[0], scopes[0][0], parts[1]};
  std::vector<Expr> children;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (const int scope = shape.parts[i].scope; scope >= 0) {
      const auto& vars = scopes[static_cast<size_t>(scope)];
      children.insert(children.end(), vars.begin(), vars.end());
    }
    children.push_back(parts[i]);
  }
  return children;
}

// Bounds what may be copied.
class Budget {
 public:
  explicit Budget(size_t num_nodes) : left_(200'000 + 20 * num_nodes) {}
  void spend(size_t work) {
    if (work > left_)
      throw_user_error(
          "variables are bound in so many places, and their uses shared by so many of them, that the program would "
          "grow out of proportion; give each function, let and pattern variables of its own");
    left_ -= work;
  }

 private:
  size_t left_;
};

using Vars = std::unordered_set<const Object*>;

// Computes which variables and nodes of an expression have different meanings in different contexts.
class Ambiguity {
 public:
  // `all`: variables that are bound once, too.
  Ambiguity(const Expr& root, bool all) {
    post_order(root, [&](const Expr& node) { order_.push_back(node); });
    budget_ = Budget(order_.size());
    for (const Expr& node : order_) count(node, all);
    find_free([&](const Expr& node) { return uses_[node.object()] > 1; });
    find_copied();
    // The variables that copies bind are bound in several places, too.
    find_free([&](const Expr& node) { return node == root || uses_[node.object()] > 1 || is_copied(node); });
  }

  bool is_tracked(const Var& var) const { return tracked_.contains(var.object()); }
  // Whether a tracked variable is bound or used in it.
  bool is_touched(const Expr& node) const { return touched_.contains(node.object()); }
  // Returns the tracked variables that are free in a node; null where it has one parent and is visited once.
  const std::vector<const Object*>* free_in(const Expr& node) const {
    const auto it = free_.find(node.object());
    return it == free_.end() ? nullptr : &it->second;
  }
  Budget& budget() { return budget_; }

 private:
  void count(const Expr& node, bool all) {
    const ScopeShape shape = scope_shape_of(node);
    for (const Part& part : shape.parts) ++uses_[part.child.object()];
    for (const auto& scope : shape.scopes) {
      Vars own;
      for (const Var& var : scope) {
        if (!own.insert(var.object()).second)
          throw_at(
              node->span, "",
              fmt::format("variable '%{}' is twice in the parameters of a function or in a pattern", var->name_hint));
        if (!bound_.insert(var.object()).second || all) tracked_.insert(var.object());
      }
    }
  }

  bool is_copied(const Expr& node) const { return copied_.contains(node.object()); }

  // Nodes in several scopes that use a tracked variable, and all in them.
  void find_copied() {
    for (size_t i = order_.size(); i-- > 0;) {
      const Expr& node = order_[i];
      const auto* free = free_in(node);
      const bool may_be = is_copied(node) || (free != nullptr && !free->empty());
      if (!may_be || node.is<VarNode>()) continue;
      const ScopeShape shape = scope_shape_of(node);
      copied_.insert(node.object());
      for (const Part& part : shape.parts) copied_.insert(part.child.object());
      for (const auto& scope : shape.scopes) {
        for (const Var& var : scope) tracked_.insert(var.object());
      }
    }
  }

  // Computes the free variables of the nodes for which `wanted` is true. A node's set moves to its only user; the set
  // of a node with several users is copied.
  template <typename F>
  void find_free(F&& wanted) {
    free_.clear();
    touched_.clear();
    std::unordered_map<const Object*, Vars> sets;
    for (const Expr& node : order_) {
      Vars set = free_of(node, sets);
      if (node.is<VarNode>() && tracked_.contains(node.object())) set = {node.object()};
      if (!set.empty()) touched_.insert(node.object());
      if (wanted(node)) {
        budget_.spend(set.size());
        free_.emplace(node.object(), std::vector<const Object*>(set.begin(), set.end()));
      }
      sets.emplace(node.object(), std::move(set));
    }
  }

  Vars free_of(const Expr& node, std::unordered_map<const Object*, Vars>& sets) {
    const ScopeShape shape = scope_shape_of(node);
    Vars result;
    for (const Part& part : shape.parts) {
      Vars& known = sets.at(part.child.object());
      if (touched_.contains(part.child.object())) touched_.insert(node.object());
      const bool is_last = uses_[part.child.object()] == 1;
      if (!is_last) budget_.spend(known.size());
      Vars set = is_last ? std::move(known) : known;
      if (part.scope >= 0) {
        for (const Var& var : shape.scopes[static_cast<size_t>(part.scope)]) set.erase(var.object());
      }
      if (set.size() > result.size()) std::swap(set, result);
      result.insert(set.begin(), set.end());
    }
    for (const auto& scope : shape.scopes) {
      for (const Var& var : scope) {
        if (tracked_.contains(var.object())) touched_.insert(node.object());
      }
    }
    return result;
  }

  std::vector<Expr> order_;  // operands first
  Budget budget_ = Budget(0);
  std::unordered_map<const Object*, size_t> uses_;
  Vars bound_, tracked_, touched_, copied_;
  std::unordered_map<const Object*, std::vector<const Object*>> free_;
};

class Renamer {
 public:
  Renamer(const Expr& root, bool all) : root_(root), ambiguity_(root, all) {
    // Free variables stay, and so nothing keeps them that binds them.
    for (const Object* var : *ambiguity_.free_in(root)) taken_.insert(var);
  }

  Expr run() {
    visit(root_);
    while (!stack_.empty()) {
      Frame& top = stack_.back();
      if (top.next < top.shape.parts.size()) {
        enter(top, top.shape.parts[top.next].scope);
        visit(Expr(top.shape.parts[top.next].child));  // may move the stack, and `top` with it
      } else {
        finish();
      }
    }
    return result_;
  }

 private:
  // The binders that a node's free variables refer to in its context; null for free variables.
  using Key = std::vector<const Object*>;
  struct Frame {
    Expr node;
    ScopeShape shape;
    std::vector<std::vector<Var>> fresh;  // the new variables
    std::vector<Expr> done;
    size_t next = 0;
    std::optional<Key> key;
  };

  void visit(const Expr& node) {
    if (node.is<VarNode>()) return give(now(node.cast<VarNode>()));
    if (!ambiguity_.is_touched(node)) return give(node);
    std::optional<Key> key = key_of(node);
    if (key) {
      const auto& known = done_[node.object()];
      if (const auto it = known.find(*key); it != known.end()) return give(it->second);
    }
    ambiguity_.budget().spend(1);
    Frame frame{node, scope_shape_of(node), {}, {}, 0, std::move(key)};
    for (const auto& scope : frame.shape.scopes) {
      frame.fresh.emplace_back();
      for (const Var& var : scope) frame.fresh.back().push_back(own_var(var));
    }
    stack_.push_back(std::move(frame));
  }

  std::optional<Key> key_of(const Expr& node) {
    const auto* free = ambiguity_.free_in(node);
    if (free == nullptr) return {};
    ambiguity_.budget().spend(free->size());
    Key key;
    for (const Object* var : *free) {
      const auto it = scopes_.find(var);
      key.push_back(it == scopes_.end() || it->second.empty() ? nullptr : it->second.back().object());
    }
    return key;
  }

  Var own_var(const Var& var) {
    if (!ambiguity_.is_tracked(var) || taken_.insert(var.object()).second) return var;
    return copy_with(*var, [](VarNode&) {});
  }

  Expr now(const Var& var) const {
    const auto it = scopes_.find(var.object());
    return it == scopes_.end() || it->second.empty() ? Expr(var) : Expr(it->second.back());
  }

  void enter(const Frame& frame, int scope) {
    if (scope < 0) return;
    const auto at = static_cast<size_t>(scope);
    for (size_t i = 0; i < frame.fresh[at].size(); ++i)
      scopes_[frame.shape.scopes[at][i].object()].push_back(frame.fresh[at][i]);
  }

  void leave(const Frame& frame, int scope) {
    if (scope < 0) return;
    for (const Var& var : frame.shape.scopes[static_cast<size_t>(scope)]) scopes_[var.object()].pop_back();
  }

  // Gives the result to the node that waits for its next part.
  void give(Expr value) {
    if (stack_.empty()) {
      result_ = std::move(value);
      return;
    }
    Frame& user = stack_.back();
    leave(user, user.shape.parts[user.next++].scope);
    user.done.push_back(std::move(value));
  }

  void finish() {
    Frame frame = std::move(stack_.back());
    stack_.pop_back();
    Expr after = with_children(frame.node, join(frame.node, frame.shape, frame.done, frame.fresh));
    if (frame.key) done_[frame.node.object()].emplace(std::move(*frame.key), after);
    give(std::move(after));
  }

  const Expr& root_;
  Ambiguity ambiguity_;
  Vars taken_;  // the variables that a binder keeps, or that are free
  std::unordered_map<const Object*, std::vector<Var>> scopes_;
  std::vector<Frame> stack_;
  std::unordered_map<const Object*, std::map<Key, Expr>> done_;
  Expr result_;
};

}  // namespace

Expr unique_binders(const Expr& expr) {
  const VariableBreaches wrong = find_variable_breaches(expr, false);
  if (!wrong.bound_twice && !wrong.outside) return expr;
  return Renamer(expr, wrong.outside.defined()).run();
}

IRModule unique_binders(const IRModule& module) {
  IRModule result;
  for (const auto& [name, function] : module->functions()) {
    if (!function.is<FunctionNode>()) continue;
    VariableBreaches wrong = find_variable_breaches(function, true);
    if (wrong.bound_twice) {
      const Function renewed = Renamer(function, wrong.outside.defined()).run().cast<FunctionNode>();
      if (!result) result = snapshot(module);
      result->add_function(name, renewed, true);
      wrong = find_variable_breaches(renewed, true);
    }
    if (wrong.outside)
      throw_at(wrong.outside->span, "",
               fmt::format("@{} uses %{}, which is not a parameter of it and bound by no let or pattern around it",
                           name->name_hint, wrong.outside->name_hint));
  }
  return result ? result : module;
}

}  // namespace headrace::relay
