// Applies a function to the operands of one scalar expression, the step that all rewrites of expressions share.
#pragma once

#include "ir/prim_expr.h"

namespace headrace {

// Applies `change` to each item; returns the same list when no item changed.
template <typename F>
Array<PrimExpr> map_items(const Array<PrimExpr>& list, F&& change) {
  Array<PrimExpr> result;
  bool changed = false;
  for (const PrimExpr& item : list) {
    result.push_back(change(item));
    changed = changed || result.back() != item;
  }
  return changed ? result : list;
}

// Applies `change` to the operands of `e`; returns the same node when none changed.
template <typename F>
PrimExpr map_operands(const PrimExpr& e, F&& change) {
  if (const auto* node = e.as<BinaryNode>()) {
    const PrimExpr a = change(node->a), b = change(node->b);
    return a == node->a && b == node->b ? e : make_binary(node->op, a, b);
  }
  if (const auto* node = e.as<NotNode>()) {
    const PrimExpr a = change(node->a);
    return a == node->a ? e : make_not(a);
  }
  if (const auto* node = e.as<SelectNode>()) {
    const PrimExpr c = change(node->condition), t = change(node->true_value), f = change(node->false_value);
    const bool same = c == node->condition && t == node->true_value && f == node->false_value;
    return same ? e : make_select(c, t, f);
  }
  if (const auto* node = e.as<CastNode>()) {
    const PrimExpr value = change(node->value);
    return value == node->value ? e : make_cast(e->dtype.with_lanes(value->dtype.lanes()), value);
  }
  if (const auto* node = e.as<RampNode>()) {
    const PrimExpr base = change(node->base), stride = change(node->stride);
    return base == node->base && stride == node->stride ? e : make_ramp(base, stride, e->dtype.lanes());
  }
  if (const auto* node = e.as<BroadcastNode>()) {
    const PrimExpr value = change(node->value);
    return value == node->value ? e : make_broadcast(value, e->dtype.lanes());
  }
  if (const auto* node = e.as<PrimLetNode>()) {
    const PrimExpr value = change(node->value), body = change(node->body);
    return value == node->value && body == node->body ? e : make_prim_let(node->var, value, body);
  }
  if (const auto* node = e.as<IntrinsicCallNode>()) {
    const Array<PrimExpr> args = map_items(node->args, change);
    return args.same_as(node->args) ? e : make_intrinsic(node->intrinsic, e->dtype, args);
  }
  if (const auto* node = e.as<BufferLoadNode>()) {
    const Array<PrimExpr> indices = map_items(node->indices, change);
    return indices.same_as(node->indices) ? e : make_load(node->buffer, indices);
  }
  return e;
}

}  // namespace headrace
