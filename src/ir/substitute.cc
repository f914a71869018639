#include "ir/prim_expr.h"

namespace headrace {

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

namespace {

// A part that stands in several places is rebuilt once, and stays shared.
struct Substitution {
  const Values& values;
  std::unordered_map<const PrimExprNode*, PrimExpr> done;
};

PrimExpr replace(const PrimExpr& e, Substitution& state);

Array<PrimExpr> replace_all(const Array<PrimExpr>& list, Substitution& state) {
  Array<PrimExpr> result;
  bool changed = false;
  for (const PrimExpr& item : list) {
    result.push_back(replace(item, state));
    changed = changed || result.back() != item;
  }
  return changed ? result : list;
}

// Depth is that of one scalar expression, which a kernel's author or a shape bounds; it does not grow with the model.
PrimExpr rebuild(const PrimExpr& e, Substitution& state) {
  auto sub = [&](const PrimExpr& inner) { return replace(inner, state); };
  if (const auto* node = e.as<BinaryNode>()) {
    PrimExpr a = sub(node->a), b = sub(node->b);
    return a == node->a && b == node->b ? e : make_binary(node->op, a, b);
  }
  if (const auto* node = e.as<NotNode>()) {
    PrimExpr a = sub(node->a);
    return a == node->a ? e : make_not(a);
  }
  if (const auto* node = e.as<SelectNode>()) {
    PrimExpr c = sub(node->condition), t = sub(node->true_value), f = sub(node->false_value);
    if (c == node->condition && t == node->true_value && f == node->false_value) return e;
    return make_select(c, t, f);
  }
  if (const auto* node = e.as<CastNode>()) {
    PrimExpr value = sub(node->value);
    return value == node->value ? e : make_cast(e->dtype, value);
  }
  if (const auto* node = e.as<RampNode>()) {
    PrimExpr base = sub(node->base), stride = sub(node->stride);
    return base == node->base && stride == node->stride ? e : make_ramp(base, stride, e->dtype.lanes());
  }
  if (const auto* node = e.as<BroadcastNode>()) {
    PrimExpr value = sub(node->value);
    return value == node->value ? e : make_broadcast(value, e->dtype.lanes());
  }
  if (const auto* node = e.as<PrimLetNode>()) {
    PrimExpr value = sub(node->value), body = sub(node->body);
    return value == node->value && body == node->body ? e : make_prim_let(node->var, value, body);
  }
  if (const auto* node = e.as<IntrinsicCallNode>()) {
    Array<PrimExpr> args = replace_all(node->args, state);
    return args.same_as(node->args) ? e : make_intrinsic(node->intrinsic, e->dtype, args);
  }
  if (const auto* node = e.as<BufferLoadNode>()) {
    Array<PrimExpr> indices = replace_all(node->indices, state);
    return indices.same_as(node->indices) ? e : make_load(node->buffer, indices);
  }
  return e;
}

PrimExpr replace(const PrimExpr& e, Substitution& state) {
  if (const auto* var = e.as<PrimVarNode>()) {
    auto it = state.values.find(var);
    return it == state.values.end() ? e : it->second;
  }
  if (e.is<IntImmNode>() || e.is<FloatImmNode>()) return e;
  if (auto it = state.done.find(e.get()); it != state.done.end()) return it->second;
  PrimExpr result = rebuild(e, state);
  state.done[e.get()] = result;
  return result;
}

}  // namespace

PrimExpr substitute(const PrimExpr& e, const Values& values) {
  Substitution state{values, {}};
  return replace(e, state);
}

}  // namespace headrace
