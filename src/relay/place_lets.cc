#include "relay/place_lets.h"

#include <algorithm>
#include <functional>
#include <list>
#include <unordered_set>

#include "relay/function_attrs.h"
#include "relay/op_keys.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

class LetPlacer {
 public:
  using HasEffect = std::function<bool(const Expr&)>;

  LetPlacer(const Expr& body, Bind bind)
      : binds_constants_(bind == Bind::everything_and_constants),
        scopes_(find_scopes(body, binds_constants_)),
        lets_(scopes_.scopes.size()) {
    if (bind == Bind::across_branches) {
      find_crossing(body);
      is_bound_ = [this](const Expr& node) { return crossing_.contains(node.object()); };
      flattens_ = [](const Expr&) { return false; };
    } else {
      is_bound_ = [this](const Expr& node) { return !is_bound_by_let(node); };
      flattens_ = [](const Expr&) { return true; };
    }
    place(body);
  }
  LetPlacer(const Expr& body, const HasEffect& has_effect)
      : scopes_(find_scopes(body)), lets_(scopes_.scopes.size()), flattens_(has_effect) {
    is_bound_ = [this](const Expr& node) { return is_ordered(node) && flattens_(node) && !is_bound_by_let(node); };
    if (is_in_order(body, has_effect)) {
      result_ = body;
    } else {
      place(body);
    }
  }
  Expr result() const { return result_; }

 private:
  struct Bound {
    Var var;
    Expr value;
    Span span;
  };
  using Lets = std::list<Bound>;

  void place(const Expr& body) {
    post_order(body, is_entered, [&](const Expr& node) { finish(node); });
    result_ = chain(0, done_.at(body.object()));
  }

  bool is_in_order(const Expr& body, const HasEffect& has_effect) const {
    bool result = true;
    post_order(body, is_entered, [&](const Expr& node) {
      if (is_atomic(node) || !has_effect(node)) return;
      result = result && scopes_.at(node).uses == 1 && (!node.is<LetNode>() || scopes_.is_flat_let(node));
    });
    return result;
  }

  bool is_bound_by_let(const Expr& node) const {
    const Scopes::Placement& place = scopes_.at(node);
    return place.is_value && place.uses == 1;
  }

  Lets& lets(int scope) { return lets_[static_cast<size_t>(scope)]; }

  Expr chain(int scope, Expr result) {
    const Lets& list = lets(scope);
    for (auto let = list.rbegin(); let != list.rend(); ++let)
      result = make_let(let->var, let->value, result, let->span);
    return result;
  }

  // Returns the regions: as the blocks, but a let in braces begins one, too, because it is evaluated before some of the
  // nodes around it.
  std::vector<int> find_regions(const Expr& body, const std::vector<int>& blocks) const {
    std::vector<int> regions = blocks;
    std::vector<bool> starts(regions.size(), false);
    post_order(body, [&](const Expr& node) {
      if (node.is<LetNode>() && !scopes_.is_flat_let(node)) starts[static_cast<size_t>(scopes_.at(node).inner)] = true;
    });
    for (size_t i = 1; i < regions.size(); ++i) {
      const bool is_start = starts[i] || blocks[i] == static_cast<int>(i);
      regions[i] = is_start ? static_cast<int>(i) : regions[static_cast<size_t>(scopes_.scopes[i].parent)];
    }
    return regions;
  }

  // Finds the nodes that cross: a user is evaluated in another block than the node, or, for nodes with effects, in
  // another region.
  void find_crossing(const Expr& body) {
    const std::vector<Expr> ordered = find_ordered(body);
    std::unordered_set<const Object*> has_effects;
    for (const Expr& node : ordered) has_effects.insert(node.object());
    const std::vector<int> blocks = find_blocks(body, scopes_), regions = find_regions(body, blocks);
    const auto use = [&](const Expr& node, int scope) {
      if (is_atomic(node)) return;
      const std::vector<int>& parts = has_effects.contains(node.object()) ? regions : blocks;
      const auto part_of = [&](int at) { return parts[static_cast<size_t>(at)]; };
      if (part_of(scopes_.at(node).scope) != part_of(scope)) crossing_.insert(node.object());
    };
    post_order(body, [&](const Expr& node) {
      if (!is_atomic(node)) use_children(node, use);
    });
    keep_order(ordered);
  }

  // Calls `use` for each child, with the scope that it is used in.
  void use_children(const Expr& node, const std::function<void(const Expr&, int)>& use) const {
    const Scopes::Placement& place = scopes_.at(node);
    if (const auto* function = node.as<FunctionNode>()) return use(function->body, place.inner);
    if (const auto* let = node.as<LetNode>()) {
      const bool is_flat = scopes_.is_flat_let(node);
      use(let->value, is_flat ? place.scope : place.inner);
      return use(let->body, is_flat ? place.inner : place.inner + 1);
    }
    if (const auto* branch = node.as<IfNode>()) {
      use(branch->cond, place.scope);
      use(branch->true_branch, place.inner);
      return use(branch->false_branch, place.inner + 1);
    }
    if (const auto* match = node.as<MatchNode>()) {
      use(match->data, place.scope);
      for (size_t i = 0; i < match->clauses.size(); ++i) use(match->clauses[i]->rhs, place.inner + static_cast<int>(i));
      return;
    }
    for (const Expr& child : children_of(node)) use(child, place.scope);
  }

  // Returns whether a node may have effects, or observe effects of others.
  static bool is_ordered(const Expr& node) {
    if (const auto* call = node.as<CallNode>()) {
      const OpNode* op = call->as_op();
      return op != nullptr ? is_stateful(*op) : !call->op.is<ConstructorNode>();
    }
    return node.is<RefCreateNode>() || node.is<RefReadNode>() || node.is<RefWriteNode>() || node.is<IfNode>() ||
           node.is<MatchNode>() || node.is<LetNode>();
  }

  // Returns the ordered nodes, and the nodes that evaluate one among their operands; making a function calls nothing.
  static std::vector<Expr> find_ordered(const Expr& body) {
    std::vector<Expr> found;
    std::unordered_set<const Object*> seen;
    const auto is_found = [&](const Expr& node) { return seen.contains(node.object()); };
    post_order(body, [&](const Expr& node) {
      if (node.is<FunctionNode>()) return;
      const std::vector<Expr> operands = children_of(node);
      if (!is_ordered(node) && std::none_of(operands.begin(), operands.end(), is_found)) return;
      found.push_back(node);
      seen.insert(node.object());
    });
    return found;
  }

  // Keeps the order of effects: binding a node evaluates it and its operands before the rest of its scope, so the
  // ordered nodes that came before it are bound, too.
  void keep_order(const std::vector<Expr>& nodes) {
    std::vector<bool> is_before_one(scopes_.scopes.size(), false);
    for (size_t i = nodes.size(); i-- > 0;) {
      const auto scope = static_cast<size_t>(scopes_.at(nodes[i]).scope);
      if (is_before_one[scope] && is_ordered(nodes[i])) crossing_.insert(nodes[i].object());
      is_before_one[scope] = is_before_one[scope] || crossing_.contains(nodes[i].object());
    }
  }

  void finish(const Expr& node) {
    if (binds_constants_ && node.is<ConstantNode>()) return bind(node, node);
    if (is_atomic(node)) {
      done_.emplace(node.object(), node);
      return;
    }
    if (const auto* let = node.as<LetNode>()) return finish_let(node, *let);
    const Expr rebuilt = is_entered(node) ? with_children(node, children(node)) : node;
    bind(node, rebuilt);
  }

  void bind(const Expr& node, const Expr& value) {
    if (!is_bound_(node)) {
      done_.emplace(node.object(), value);
      return;
    }
    const Var var = make_var("x", {}, node->span);
    lets(scopes_.at(node).scope).push_back({var, value, node->span});
    done_.emplace(node.object(), var);
  }

  void finish_let(const Expr& node, const LetNode& let) {
    const Scopes::Placement& place = scopes_.at(node);
    const Expr value = done_.at(let.value.object()), body = done_.at(let.body.object());
    const bool is_flat = scopes_.is_flat_let(node);
    const int base = place.inner, inner = is_flat ? place.inner : place.inner + 1;
    if (flattens_(node)) {
      Lets& outer = lets(place.scope);
      if (!is_flat) outer.splice(outer.end(), lets(base));
      outer.push_back({let.var, value, node->span});
      outer.splice(outer.end(), lets(inner));
      done_.emplace(node.object(), body);
      return;
    }
    const Expr rest = chain(inner, body);
    const bool same = value == let.value && rest == let.body;
    const Expr rebuilt = same ? node : Expr(make_let(let.var, value, rest, node->span));
    if (is_flat) {
      done_.emplace(node.object(), rebuilt);
    } else {
      bind(node, chain(base, rebuilt));
    }
  }

  // Returns the rewritten children. Variables of patterns and parameters stay; bodies get the lets of their scope.
  std::vector<Expr> children(const Expr& node) {
    std::vector<Expr> result = children_of(node);
    for (Expr& child : result) child = done_.at(child.object());
    const int inner = scopes_.at(node).inner;
    if (node.is<FunctionNode>()) result.back() = chain(inner, result.back());
    if (node.is<IfNode>()) {
      result[1] = chain(inner, result[1]);
      result[2] = chain(inner + 1, result[2]);
    }
    if (const auto* match = node.as<MatchNode>()) {
      size_t at = 1;
      for (size_t i = 0; i < match->clauses.size(); ++i) {
        at += pattern_vars(match->clauses[i]->lhs).size();
        result[at] = chain(inner + static_cast<int>(i), result[at]);
        ++at;
      }
    }
    return result;
  }

  bool binds_constants_ = false;
  Scopes scopes_;
  std::vector<Lets> lets_;  // by scope
  // Whether a node gets a let of its own; whether a let becomes part of the chain that it stands in.
  std::function<bool(const Expr&)> is_bound_, flattens_;
  std::unordered_set<const Object*> crossing_;
  std::unordered_map<const Object*, Expr> done_;
  Expr result_;
};

}  // namespace

Expr place_lets(const Expr& body, Bind bind) { return LetPlacer(body, bind).result(); }

Expr bind_effects(const Expr& body, const std::function<bool(const Expr&)>& has_effect) {
  return LetPlacer(body, has_effect).result();
}

}  // namespace headrace::relay
