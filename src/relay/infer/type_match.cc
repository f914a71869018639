#include "relay/infer/type_match.h"

#include "arith/canonical.h"
#include "ir/type_parts.h"
#include "object/structural_equal.h"

namespace headrace::relay {

namespace {

bool same_dim(const PrimExpr& a, const PrimExpr& b) {
  if (is_any(a) || is_any(b)) return is_any(a) && is_any(b);
  return a == b || arith::is_equal(a, b);
}

bool same_types(const Array<Type>& a, const Array<Type>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same_type(a[i], b[i])) return false;
  }
  return true;
}

bool same_tensor(const TensorTypeNode& a, const TensorTypeNode& b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return false;
  for (size_t i = 0; i < a.shape.size(); ++i) {
    if (!same_dim(a.shape[i], b.shape[i])) return false;
  }
  return true;
}

bool same_relation(const TypeRelationNode& a, const TypeRelationNode& b) {
  return a.name == b.name && a.num_inputs == b.num_inputs && structural_equal(Value(a.attrs), Value(b.attrs));
}

bool same_counts(const FuncTypeNode& a, const FuncTypeNode& b) {
  return a.type_params.size() == b.type_params.size() && a.arg_types.size() == b.arg_types.size();
}

}  // namespace

Type strip_empty_call(const Type& type) {
  const auto* call = type.as<TypeCallNode>();
  return call != nullptr && call->args.empty() ? call->func : type;
}

bool same_type(const Type& a_in, const Type& b_in) {
  const Type a = strip_empty_call(a_in), b = strip_empty_call(b_in);
  if (a == b) return true;
  if (!a || !b || a->type_index() != b->type_index()) return false;
  if (const auto* x = a.as<TensorTypeNode>()) return same_tensor(*x, *b.as<TensorTypeNode>());
  if (const auto* x = a.as<PrimTypeNode>()) return x->dtype == b.as<PrimTypeNode>()->dtype;
  if (const auto* x = a.as<GlobalTypeVarNode>()) return x->name_hint == b.as<GlobalTypeVarNode>()->name_hint;
  if (a.is<TypeVarNode>() || a.is<IncompleteTypeNode>()) return false;
  const auto* relation = a.as<TypeRelationNode>();
  if (relation != nullptr && !same_relation(*relation, *b.as<TypeRelationNode>())) return false;
  const auto* function = a.as<FuncTypeNode>();
  if (function != nullptr && !same_counts(*function, *b.as<FuncTypeNode>())) return false;
  return same_types(type_children(a), type_children(b));
}

void visit_symbols(const PrimExpr& dim, const std::function<void(const PrimVarNode*)>& visit) {
  std::vector<PrimExpr> pending{dim};
  while (!pending.empty()) {
    const PrimExpr at = pending.back();
    pending.pop_back();
    if (const auto* var = at.as<PrimVarNode>()) visit(var);
    if (const auto* binary = at.as<BinaryNode>()) pending.insert(pending.end(), {binary->a, binary->b});
    if (const auto* cast = at.as<CastNode>()) pending.push_back(cast->value);
    if (const auto* inverse = at.as<NotNode>()) pending.push_back(inverse->a);
    if (const auto* s = at.as<SelectNode>())
      pending.insert(pending.end(), {s->condition, s->true_value, s->false_value});
  }
}

void visit_symbols(const Type& type, const std::function<void(const PrimVarNode*)>& visit) {
  any_type(type, [&](const Type& at) {
    const auto* tensor = at.as<TensorTypeNode>();
    for (size_t i = 0; tensor != nullptr && i < tensor->shape.size(); ++i) visit_symbols(tensor->shape[i], visit);
    return false;
  });
}

namespace {

PrimExpr instantiate_dim(const PrimExpr& dim, const std::function<bool(const Object*)>& can_bind,
                         const TypeBindings& bindings) {
  if (as_int(dim) || is_any(dim)) return dim;
  bool has_unbound = false, has_bound = false;
  visit_symbols(dim, [&](const PrimVarNode* symbol) {
    const bool bound = bindings.symbols.contains(symbol);
    has_bound |= bound;
    has_unbound |= !bound && can_bind(symbol);
  });
  if (has_unbound) return make_any();
  return has_bound ? arith::simplify_dim(substitute(dim, bindings.symbols)) : dim;
}

}  // namespace

Type instantiate(const Type& type, const std::function<bool(const Object*)>& can_bind, const TypeBindings& bindings) {
  if (const auto* tensor = type.as<TensorTypeNode>()) {
    if (as_shape(tensor->shape)) return type;
    Array<PrimExpr> dims;
    for (const PrimExpr& dim : tensor->shape) dims.push_back(instantiate_dim(dim, can_bind, bindings));
    return make_tensor_type(dims, tensor->dtype);
  }
  if (const auto* var = type.as<TypeVarNode>()) {
    const auto it = bindings.types.find(var);
    return it == bindings.types.end() ? type : it->second;
  }
  return map_type_children(type, [&](const Type& part) { return instantiate(part, can_bind, bindings); });
}

int64_t type_size(const Type& type, int64_t limit) {
  std::vector<std::pair<Type, int>> pending{{type, 1}};
  int64_t size = 0;
  while (!pending.empty()) {
    const auto [at, depth] = pending.back();
    pending.pop_back();
    if (++size >= limit || depth > kMaxTypeDepth) return limit;
    for (const Type& part : type_children(at)) pending.emplace_back(part, depth + 1);
  }
  return size;
}

}  // namespace headrace::relay
