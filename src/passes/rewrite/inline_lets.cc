#include "passes/rewrite/inline_lets.h"

#include "ir/type_parts.h"
#include "relay/function_attrs.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::LetNode;

namespace {

using Lets = std::unordered_map<const Object*, const LetNode*>;

// Returns whether the written type may be the only source of a constructor's or generic function's type arguments.
bool may_decide_types(const Type& written) {
  return any_type(written, [](const Type& part) { return part.is<TypeCallNode>() || part.is<FuncTypeNode>(); });
}

// Returns the lets to inline, by their variables. A let stays whose value must be evaluated in its place, or uses its
// own variable.
Lets dropped_lets(const Expr& body, const Effects& effects, const std::function<bool(const LetNode&)>& may_go) {
  std::unordered_map<const Object*, std::vector<const LetNode*>> by_value;
  std::vector<Expr> units;
  relay::post_order(body, relay::is_entered, [&](const Expr& node) {
    const auto* let = node.as<LetNode>();
    if (let != nullptr && !effects.of(let->value) && !may_decide_types(let->var->type_annotation) && may_go(*let))
      by_value[let->value.object()].push_back(let);
    if (!relay::is_entered(node)) units.push_back(node);
  });
  std::unordered_set<const Object*> met;
  for (const relay::Var& var : relay::all_vars(relay::make_tuple(Array<Expr>(units)))) met.insert(var.object());
  Lets dropped;
  relay::post_order(body, [&](const Expr& node) {
    if (node.is<relay::VarNode>()) met.insert(node.object());
    const auto lets = by_value.find(node.object());
    if (lets == by_value.end()) return;
    // A variable that is met before its value is done occurs in that value, or in a function that stays as it is.
    for (const LetNode* let : lets->second) {
      if (!met.contains(let->var.object())) dropped.emplace(let->var.object(), let);
    }
  });
  return dropped;
}

}  // namespace

Expr inline_lets(const Expr& body, const Effects& effects, const std::function<bool(const LetNode&)>& may_go) {
  const Lets dropped = dropped_lets(body, effects, may_go);
  if (dropped.empty()) return body;
  std::unordered_map<const Object*, Expr> values;
  for (const auto& [var, let] : dropped) values.emplace(let->value.object(), Expr());
  return relay::rewrite_post_order(body, [&](const Expr& before, const Expr& after) {
    Expr result = after;
    if (const auto* let = before.as<LetNode>(); let != nullptr && dropped.contains(let->var.object()))
      result = after.as<LetNode>()->body;
    if (const auto it = dropped.find(before.object()); it != dropped.end())
      result = values.at(it->second->value.object());
    if (const auto it = values.find(before.object()); it != values.end()) it->second = result;
    return result;
  });
}

}  // namespace headrace::passes
