// The direct children of a node without a list of them, for walks over large programs.
#pragma once

#include "relay/visit.h"

namespace headrace::relay {

namespace detail {

template <typename T>
const T* node_as(const ExprNode& node) {
  return node.is_instance<T>() ? static_cast<const T*>(&node) : nullptr;
}

template <typename T, typename Visit>
void for_each_item(const Array<T>& array, Visit&& visit) {
  if (!array.object()) return;
  for (const Value& item : array.object()->items) visit(static_cast<const ExprNode*>(item.object()));
}

template <typename Visit>
void for_each_child_of_match(const MatchNode& match, Visit&& visit) {
  visit(match.data.get());
  for (const Clause& clause : match.clauses) {
    for (const Var& var : pattern_vars(clause->lhs)) visit(static_cast<const ExprNode*>(var.get()));
    visit(static_cast<const ExprNode*>(clause->rhs.get()));
  }
}

}  // namespace detail

// Calls `visit` with a pointer to each direct child, in the order of children_of(). The pointer is null where the node
// lacks a child.
template <typename Visit>
void for_each_child(const ExprNode& node, Visit&& visit) {
  const auto each = [&](const auto&... children) { (visit(static_cast<const ExprNode*>(children.get())), ...); };
  if (const auto* call = detail::node_as<CallNode>(node)) {
    each(call->op);
    detail::for_each_item(call->args, visit);
  } else if (const auto* function = detail::node_as<FunctionNode>(node)) {
    detail::for_each_item(function->params, visit);
    each(function->body);
  } else if (const auto* let = detail::node_as<LetNode>(node)) {
    each(let->value, let->var, let->body);
  } else if (const auto* branch = detail::node_as<IfNode>(node)) {
    each(branch->cond, branch->true_branch, branch->false_branch);
  } else if (const auto* tuple = detail::node_as<TupleNode>(node)) {
    detail::for_each_item(tuple->items, visit);
  } else if (const auto* item = detail::node_as<TupleGetItemNode>(node)) {
    each(item->tuple);
  } else if (const auto* create = detail::node_as<RefCreateNode>(node)) {
    each(create->value);
  } else if (const auto* read = detail::node_as<RefReadNode>(node)) {
    each(read->ref);
  } else if (const auto* write = detail::node_as<RefWriteNode>(node)) {
    each(write->ref, write->value);
  } else if (const auto* match = detail::node_as<MatchNode>(node)) {
    detail::for_each_child_of_match(*match, visit);
  }
}

}  // namespace headrace::relay
