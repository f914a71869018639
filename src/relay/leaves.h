// Flattens values of tuple type: lists with one item for each tensor of the value, in order.
#pragma once

#include <algorithm>
#include <vector>

#include "relay/expr.h"

namespace headrace::relay {

// Selects from `all`, which has one element for each leaf of the tuple, the elements of the item. InternalError when
// the item's operand is not a tuple.
template <typename T>
std::vector<T> leaves_of_item(const TupleGetItemNode& item, const std::vector<T>& all) {
  const Type& type = item.tuple->checked_type();
  const auto* tuple = type.as<TupleTypeNode>();
  HEADRACE_CHECK(tuple != nullptr, "an item of {}", to_string(type));
  const LeafRange range = leaves_of_field(*tuple, item.index);
  const auto first = all.begin() + static_cast<std::ptrdiff_t>(range.begin);
  return {first, first + static_cast<std::ptrdiff_t>(range.count)};
}

// Returns whether the tensor, or a tensor of the tuple, has a data-dependent dimension.
inline bool has_unknown_dim(const Type& type) {
  const std::vector<Type> leaves = leaves_of(type);
  return std::any_of(leaves.begin(), leaves.end(), [](const Type& leaf) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    return tensor != nullptr && std::any_of(tensor->shape.begin(), tensor->shape.end(), is_any);
  });
}

// Returns the values that a call reads: its arguments, with tuple literals replaced by their items.
inline std::vector<Expr> items_of_args(const CallNode& call) {
  std::vector<Expr> items;
  for (const Expr& arg : call.args) {
    const auto* tuple = arg.as<TupleNode>();
    if (tuple == nullptr) items.push_back(arg);
    for (size_t i = 0; tuple != nullptr && i < tuple->items.size(); ++i) items.push_back(tuple->items[i]);
  }
  return items;
}

// Puts a value of `type` together from its tensors, taken from `next` on. Its tuples have their types.
inline Expr assembled(const Type& type, const std::vector<Expr>& leaves, size_t& next) {
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) return leaves.at(next++);
  Array<Expr> items;
  for (const Type& item : tuple->items) items.push_back(assembled(item, leaves, next));
  const Expr value = make_tuple(items);
  value->set_checked_type(type);
  return value;
}

}  // namespace headrace::relay
