#include "relay/captures.h"

#include <unordered_set>

#include "relay/visit.h"

namespace headrace::relay {

namespace {

// Returns the variables that a function uses and does not bind, given the captures of the literals in it.
std::vector<Var> captures_in(const FunctionNode& function, const Captures& inner) {
  std::unordered_set<const Object*> bound, seen;
  std::vector<Var> used;
  const auto bind = [&](const Var& var) { bound.insert(var.object()); };
  const auto use = [&](const Var& var) {
    if (seen.insert(var.object()).second) used.push_back(var);
  };
  for (const Var& param : function.params) bind(param);
  const auto is_entered = [](const Expr& e) { return !e.is<FunctionNode>(); };
  post_order(function.body, is_entered, [&](const Expr& e) {
    if (e.is<VarNode>()) use(e.cast<VarNode>());
    if (const auto* let = e.as<LetNode>()) bind(let->var);
    if (const auto* match = e.as<MatchNode>()) {
      for (const Clause& clause : match->clauses) {
        for (const Var& var : pattern_vars(clause->lhs)) bind(var);
      }
    }
    if (e.is<FunctionNode>()) {
      for (const Var& var : inner.at(e.object())) use(var);
    }
  });
  std::erase_if(used, [&](const Var& var) { return bound.contains(var.object()); });
  return used;
}

}  // namespace

void find_captures(const Expr& function, Captures& captures) {
  post_order(function, [&](const Expr& e) {  // inner ones come first
    const auto* literal = e.as<FunctionNode>();
    if (literal != nullptr && !captures.contains(literal)) captures.emplace(literal, captures_in(*literal, captures));
  });
}

}  // namespace headrace::relay
