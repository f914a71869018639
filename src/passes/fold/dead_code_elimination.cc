#include "passes/fold/dead_code_elimination.h"

#include <unordered_set>

#include "passes/functions/remove_unused_functions.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/inline_lets.h"
#include "relay/function_attrs.h"
#include "relay/scopes.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::FunctionNode;
using relay::LetNode;

namespace {

// Marks expressions that must be computed, starting from the result. Visits the value of a let if it has an effect, or
// when its variable is visited.
class LiveLets {
 public:
  LiveLets(const Expr& body, const Effects& effects) : effects_(effects) {
    std::vector<Expr> units;
    relay::post_order(body, relay::is_entered, [&](const Expr& e) {
      if (const auto* let = e.as<LetNode>()) lets_[let->var.object()] = let;
      if (!relay::is_entered(e)) units.push_back(e);
    });
    push(body);
    for (const relay::Var& var : relay::all_vars(relay::make_tuple(Array<Expr>(units)))) push(var);  // they stay whole
    while (!pending_.empty()) {
      const Expr node = pending_.back();
      pending_.pop_back();
      visit(node);
    }
  }
  bool is_live(const LetNode& let) const { return live_.contains(&let); }

 private:
  void push(const Expr& expr) {
    if (seen_.insert(expr.object()).second) pending_.push_back(expr);
  }

  void keep(const LetNode& let) {
    if (live_.insert(&let).second) push(let.value);
  }

  void visit(const Expr& node) {
    if (!relay::is_entered(node)) return;
    if (const auto* let = node.as<LetNode>()) {
      if (effects_.of(let->value)) keep(*let);
      return push(let->body);
    }
    if (node.is<relay::VarNode>()) {
      const auto let = lets_.find(node.object());
      if (let != lets_.end()) keep(*let->second);
      return;
    }
    for (const Expr& child : relay::children_of(node)) push(child);
  }

  const Effects& effects_;
  std::unordered_map<const Object*, const LetNode*> lets_;
  std::unordered_set<const Object*> seen_;
  std::unordered_set<const LetNode*> live_;
  std::vector<Expr> pending_;
};

Expr drop_dead_lets(const Expr& body, const Effects& effects) {
  const LiveLets lets(body, effects);
  return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
    const auto* let = before.as<LetNode>();
    return let == nullptr || lets.is_live(*let) ? after : after.as<LetNode>()->body;
  });
}

IRModule drop_dead_lets(const IRModule& module, const Effects& effects) {
  return rewrite_bodies(module, [&](const Expr& body) { return drop_dead_lets(body, effects); });
}

// Counts the uses of the variables of the lets of a body. A use counts as several in a function within the one that
// binds the variable.
std::unordered_map<const Object*, int64_t> count_uses(const Expr& body) {
  constexpr int64_t kMany = 2;
  const relay::Scopes scopes = relay::find_scopes(body);
  const std::vector<int> functions = relay::find_function_scopes(body, scopes);
  const auto function_of = [&](int scope) { return functions[static_cast<size_t>(scope)]; };
  std::unordered_map<const Object*, int> binders;
  relay::post_order(body, [&](const Expr& e) {
    if (const auto* let = e.as<LetNode>()) binders[let->var.object()] = function_of(scopes.at(e).scope);
  });
  std::unordered_map<const Object*, int64_t> counts;
  relay::post_order(body, [&](const Expr& e) {
    if (const auto* let = e.as<LetNode>()) --counts[let->var.object()];  // the binding is not a use
    if (relay::is_atomic(e)) return;
    const auto& place = scopes.at(e);
    const int user = function_of(e.is<FunctionNode>() ? place.inner : place.scope);
    for (const Expr& child : relay::children_of(e)) {
      const auto binder = binders.find(child.object());
      if (binder != binders.end()) counts[child.object()] += binder->second == user ? 1 : kMany;
    }
  });
  return counts;
}

IRModule inline_once(const IRModule& module, const Effects& effects) {
  return rewrite_bodies(module, [&](const Expr& body) {
    const auto counts = count_uses(body);
    return inline_lets(body, effects, [&](const LetNode& let) { return counts.at(let.var.object()) == 1; });
  });
}

}  // namespace

IRModule drop_unused_lets(const IRModule& module) {
  const InOrder ordered = in_order(module);
  return drop_dead_lets(ordered.module, ordered.writes());
}

DceOptions dce_options(const pass::PassContext& context) {
  const DceOptions defaults;
  return {context.option<bool>("relay.DeadCodeElimination.inline_once").value_or(defaults.inline_once),
          context.option<bool>("relay.DeadCodeElimination.ignore_impurity").value_or(defaults.ignore_impurity)};
}

IRModule dead_code_elimination(const IRModule& module, const DceOptions& options) {
  const bool sees_effects = !options.ignore_impurity;
  IRModule result = sees_effects ? drop_unused_lets(module) : drop_dead_lets(module, Effects());
  if (options.inline_once) result = inline_once(result, sees_effects ? Effects(result, true) : Effects());
  return remove_unused_functions(result);
}

}  // namespace headrace::passes
