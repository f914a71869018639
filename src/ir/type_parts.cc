#include "ir/type_parts.h"

#include <unordered_set>

namespace headrace {

Array<Type> type_children(const Type& type) {
  if (const auto* tuple = type.as<TupleTypeNode>()) return tuple->items;
  if (const auto* function = type.as<FuncTypeNode>()) {
    Array<Type> children = function->arg_types;
    children.push_back(function->ret_type);
    for (const Type& constraint : function->type_constraints) children.push_back(constraint);
    return children;
  }
  if (const auto* cell = type.as<RefTypeNode>()) return {cell->value};
  if (const auto* call = type.as<TypeCallNode>()) {
    Array<Type> children{call->func};
    for (const Type& arg : call->args) children.push_back(arg);
    return children;
  }
  if (const auto* relation = type.as<TypeRelationNode>()) return relation->args;
  return {};
}

Type with_type_children(const Type& type, const Array<Type>& children) {
  const Array<Type> old = type_children(type);
  HEADRACE_CHECK(old.size() == children.size(), "a {} has {} parts, not {}", type->key(), old.size(), children.size());
  if (children.same_as(old) || std::equal(old.begin(), old.end(), children.begin())) return type;
  if (const auto* tuple = type.as<TupleTypeNode>())
    return copy_with(*tuple, [&](TupleTypeNode& node) { node.items = children; });
  if (const auto* function = type.as<FuncTypeNode>()) {
    const auto result = children.begin() + static_cast<std::ptrdiff_t>(function->arg_types.size());
    return copy_with(*function, [&](FuncTypeNode& node) {
      node.arg_types = Array<Type>(children.begin(), result);
      node.ret_type = *result;
      node.type_constraints = Array<Type>(result + 1, children.end());
    });
  }
  if (const auto* cell = type.as<RefTypeNode>())
    return copy_with(*cell, [&](RefTypeNode& node) { node.value = children[0]; });
  if (const auto* call = type.as<TypeCallNode>()) {
    return copy_with(*call, [&](TypeCallNode& node) {
      node.func = children[0];
      node.args = Array<Type>(children.begin() + 1, children.end());
    });
  }
  const auto* relation = type.as<TypeRelationNode>();
  HEADRACE_CHECK(relation != nullptr, "a {} has parts", type->key());
  return copy_with(*relation, [&](TypeRelationNode& node) { node.args = children; });
}

bool any_type(const Type& type, const std::function<bool(const Type&)>& is_it) {
  std::vector<Type> pending{type};
  std::unordered_set<const Object*> seen;  // types with parts
  while (!pending.empty()) {
    const Type at = std::move(pending.back());
    pending.pop_back();
    const Array<Type> children = type_children(at);
    if (!children.empty() && !seen.insert(at.object()).second) continue;
    if (is_it(at)) return true;
    for (size_t i = children.size(); i-- > 0;) pending.push_back(children[i]);
  }
  return false;
}

}  // namespace headrace
