#include "relay/infer/type_match.h"

#include "arith/canonical.h"

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
  if (const auto* x = a.as<TupleTypeNode>()) return same_types(x->items, b.as<TupleTypeNode>()->items);
  if (const auto* x = a.as<FuncTypeNode>()) {
    const auto* y = b.as<FuncTypeNode>();
    return x->type_params.size() == y->type_params.size() && same_types(x->arg_types, y->arg_types) &&
           same_type(x->ret_type, y->ret_type);
  }
  if (const auto* x = a.as<RefTypeNode>()) return same_type(x->value, b.as<RefTypeNode>()->value);
  if (const auto* x = a.as<TypeCallNode>()) {
    const auto* y = b.as<TypeCallNode>();
    return same_type(x->func, y->func) && same_types(x->args, y->args);
  }
  if (const auto* x = a.as<PrimTypeNode>()) return x->dtype == b.as<PrimTypeNode>()->dtype;
  if (const auto* x = a.as<GlobalTypeVarNode>()) return x->name_hint == b.as<GlobalTypeVarNode>()->name_hint;
  return false;
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
  const auto visit_all = [&](const Array<Type>& types) {
    for (const Type& item : types) visit_symbols(item, visit);
  };
  if (const auto* tensor = type.as<TensorTypeNode>()) {
    for (const PrimExpr& dim : tensor->shape) visit_symbols(dim, visit);
  } else if (const auto* tuple = type.as<TupleTypeNode>()) {
    visit_all(tuple->items);
  } else if (const auto* function = type.as<FuncTypeNode>()) {
    visit_all(function->arg_types);
    visit_symbols(function->ret_type, visit);
  } else if (const auto* cell = type.as<RefTypeNode>()) {
    visit_symbols(cell->value, visit);
  } else if (const auto* call = type.as<TypeCallNode>()) {
    visit_all(call->args);
  }
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
  const auto instantiate_all = [&](const Array<Type>& types) {
    Array<Type> result;
    for (const Type& item : types) result.push_back(instantiate(item, can_bind, bindings));
    return result;
  };
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
  if (const auto* tuple = type.as<TupleTypeNode>()) return make_tuple_type(instantiate_all(tuple->items));
  if (const auto* function = type.as<FuncTypeNode>()) {
    return make_func_type(instantiate_all(function->arg_types), instantiate(function->ret_type, can_bind, bindings),
                          function->type_params, function->type_constraints);
  }
  if (const auto* cell = type.as<RefTypeNode>()) return make_ref_type(instantiate(cell->value, can_bind, bindings));
  if (const auto* call = type.as<TypeCallNode>()) return make_type_call(call->func, instantiate_all(call->args));
  return type;
}

int64_t type_size(const Type& type, int64_t limit) {
  std::vector<std::pair<Type, int>> pending{{type, 1}};
  int64_t size = 0;
  while (!pending.empty()) {
    const auto [at, depth] = pending.back();
    pending.pop_back();
    if (++size >= limit || depth > kMaxTypeDepth) return limit;
    const auto push_all = [&pending, next = depth + 1](const Array<Type>& types) {
      for (const Type& item : types) pending.emplace_back(item, next);
    };
    if (const auto* tuple = at.as<TupleTypeNode>()) push_all(tuple->items);
    if (const auto* cell = at.as<RefTypeNode>()) pending.emplace_back(cell->value, depth + 1);
    if (const auto* call = at.as<TypeCallNode>()) push_all(call->args);
    if (const auto* function = at.as<FuncTypeNode>()) {
      push_all(function->arg_types);
      pending.emplace_back(function->ret_type, depth + 1);
    }
  }
  return size;
}

}  // namespace headrace::relay
