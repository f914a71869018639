#include "kit/repeat_binders.h"

#include <unordered_set>

#include "object/structural_equal.h"
#include "relay/visit.h"

namespace headrace::kit {

namespace {

using relay::Var;

struct Binder {
  Var var;
  const Object* place = nullptr;             // the function, let or clause
  std::unordered_set<const Object*> inside;  // the free variables of what the variable may be used in
};

void add_binders(const Object* place, const std::vector<Var>& vars, const Expr& reach, std::vector<Binder>& binders) {
  std::unordered_set<const Object*> inside;
  for (const Var& var : relay::free_vars(reach)) inside.insert(var.object());
  for (const Var& var : vars) binders.push_back({var, place, inside});
}

// Returns the parameters of `function` last.
std::vector<Binder> find_binders(const relay::Function& function) {
  std::vector<Binder> binders;
  relay::post_order(function, [&](const Expr& e) {
    if (const auto* inner = e.as<relay::FunctionNode>())
      add_binders(inner, inner->params.to_vector(), inner->body, binders);
    if (const auto* let = e.as<relay::LetNode>()) {
      const bool is_recursive = let->value.is<relay::FunctionNode>();
      add_binders(let, {let->var}, is_recursive ? relay::make_tuple({let->value, let->body}) : let->body, binders);
    }
    if (const auto* match = e.as<relay::MatchNode>()) {
      for (const relay::Clause& clause : match->clauses)
        add_binders(clause.object(), relay::pattern_vars(clause->lhs), clause->rhs, binders);
    }
  });
  return binders;
}

bool may_be_one(const Binder& a, const Binder& b) {
  return a.place != b.place && !a.inside.contains(b.var.object()) && !b.inside.contains(a.var.object()) &&
         structural_equal(Value(a.var->checked_type()), Value(b.var->checked_type())) &&
         structural_equal(Value(a.var->type_annotation), Value(b.var->type_annotation));
}

relay::Function with_repeated_binders(const relay::Function& function, Random& random) {
  const std::vector<Binder> binders = find_binders(function);
  std::vector<std::vector<const Binder*>> groups;
  std::unordered_map<const Object*, Expr> replaced;
  for (size_t i = binders.size(); i-- > 0;) {  // parameters of the function first: they stay
    const Binder& binder = binders[i];
    const auto fits = [&](const auto& group) {
      return binder.place != function.object() && random.chance(0.8F) &&
             std::all_of(group.begin(), group.end(), [&](const Binder* other) { return may_be_one(*other, binder); });
    };
    const auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) {
      groups.push_back({&binder});
    } else {
      replaced.emplace(binder.var.object(), group->front()->var);
      group->push_back(&binder);
    }
  }
  return relay::rewrite_post_order(function,
                                   [&](const Expr& before, const Expr& after) {
                                     const auto it = replaced.find(before.object());
                                     return it == replaced.end() ? after : it->second;
                                   })
      .cast<relay::FunctionNode>();
}

}  // namespace

IRModule repeat_binders(const IRModule& module, Random& random) {
  IRModule result;
  for (const auto& [name, function] : module->functions()) {
    const auto relay_function = function.cast<relay::FunctionNode>();
    if (!relay_function) continue;
    const relay::Function repeated = with_repeated_binders(relay_function, random);
    if (repeated == relay_function) continue;
    if (!result) result = snapshot(module);
    result->add_function(name, repeated, true);
  }
  return result ? result : module;
}

}  // namespace headrace::kit
