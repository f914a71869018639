#include "relay/infer/type_solver.h"

#include "arith/canonical.h"
#include "base/stack.h"
#include "ir/type_parts.h"

namespace headrace::relay {

PrimExpr TypeSolver::unknown_dim(const std::string& name) {
  const PrimVar symbol = make_prim_var(name);
  kept_dims_.push_back(symbol);
  unknown_.emplace(symbol.get(), symbol);
  return symbol;
}

bool TypeSolver::is_unknown_dim(const PrimExpr& dim) const {
  const auto* symbol = dim.as<PrimVarNode>();
  return symbol != nullptr && unknown_.contains(symbol);
}

std::vector<PrimExpr> TypeSolver::unknowns_in(const PrimExpr& dim) const {
  if (unknown_.empty() || as_int(dim) || is_any(dim)) return {};
  std::vector<PrimExpr> found;
  visit_symbols(dim, [&](const PrimVarNode* symbol) {
    const auto it = unknown_.find(symbol);
    if (it != unknown_.end() && std::find(found.begin(), found.end(), it->second) == found.end())
      found.push_back(it->second);
  });
  return found;
}

// Unknowns that were settled as each other form chains; each is made short as it is followed.
Type TypeSolver::last_unknown(const Type& start) {
  Type last = start;
  int steps = 0;
  for (auto it = types_.find(last.object()); it != types_.end() && it->second.is<IncompleteTypeNode>();
       it = types_.find(last.object()), ++steps)
    last = it->second;
  Type at = start;
  for (; steps > 1; --steps) at = std::exchange(types_.at(at.object()), last);
  return last;
}

Type TypeSolver::root_of(const Type& type) {
  if (!type.is<IncompleteTypeNode>()) return strip_empty_call(type);
  const Type last = last_unknown(type);
  const auto settled = types_.find(last.object());
  return settled == types_.end() ? last : strip_empty_call(settled->second);
}

PrimExpr TypeSolver::resolve_dim(const PrimExpr& dim) {
  if (dims_.empty() || as_int(dim) || is_any(dim)) return dim;
  PrimExpr at = dim;
  // A settled dimension may have been settled as one that was unknown then.
  for (bool found = true; found;) {
    found = false;
    visit_symbols(at, [&](const PrimVarNode* symbol) { found = found || dims_.contains(symbol); });
    if (found) at = arith::simplify_dim(substitute(at, dims_));
  }
  return at;
}

Type TypeSolver::resolve_at(const Type& type, int depth) {
  if (is_stack_low()) throw UserError("the type nests too deeply for the stack");
  if (depth > kMaxTypeDepth || --budget_ < 0)
    throw_user_error("the type nests deeper than {} or has more than {} parts", kMaxTypeDepth, kMaxTypeSize);
  if (type.is<IncompleteTypeNode>()) {
    const Type root = root_of(type);
    if (root == type || root.is<IncompleteTypeNode>()) return root;
    return types_[last_unknown(type).object()] = resolve_at(root, depth + 1);
  }
  if (const auto* tensor = type.as<TensorTypeNode>()) return resolve_tensor(*tensor);
  if (is_remembered(type)) return type;
  return map_type_children(type, [&](const Type& part) { return resolve_at(part, depth + 1); });
}

Type TypeSolver::resolve_tensor(const TensorTypeNode& tensor) {
  if (dims_.empty()) return ref(&tensor);
  bool changed = false;
  Array<PrimExpr> dims;
  for (const PrimExpr& dim : tensor.shape) {
    dims.push_back(resolve_dim(dim));
    changed = changed || dims.back() != dim;
  }
  return changed ? make_tensor_type(dims, tensor.dtype) : ref(&tensor);
}

Type TypeSolver::resolve(const Type& type) {
  if (types_.empty() && dims_.empty()) return type;
  budget_ = kMaxTypeSize;
  return resolve_at(type, 1);
}

std::vector<const Object*> TypeSolver::unknowns_of(const Type& type) const {
  std::vector<const Object*> out;
  std::unordered_set<const Object*> seen;
  const auto add = [&](const Object* unknown) {
    if (seen.insert(unknown).second) out.push_back(unknown);
  };
  any_type(type, [&](const Type& at) {
    if (at.is<IncompleteTypeNode>()) add(at.object());
    const auto* tensor = unknown_.empty() ? nullptr : at.as<TensorTypeNode>();
    for (size_t i = 0; tensor != nullptr && i < tensor->shape.size(); ++i) {
      const PrimExpr dim = tensor->shape[i];
      if (as_int(dim) || is_any(dim)) continue;
      visit_symbols(dim, [&](const PrimVarNode* symbol) {
        if (unknown_.contains(symbol)) add(symbol);
      });
    }
    return false;
  });
  return out;
}

std::vector<const Object*> TypeSolver::unknowns(const Type& type) {
  const Type resolved = resolve(type);
  return is_remembered(resolved) ? std::vector<const Object*>() : unknowns_of(resolved);
}

void TypeSolver::remember_closed(const Type& type) {
  constexpr size_t kWide = 8;  // fewer items are gone through as fast
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr || tuple->items.size() < kWide || is_remembered(type)) return;
  bool is_closed = unknowns_of(type).empty();  // counts unknowns that are settled by now, too
  visit_symbols(type, [&](const PrimVarNode* symbol) { is_closed = is_closed && !dims_.contains(symbol); });
  if (is_closed) closed_.emplace(type.object(), type);
}

Type TypeSolver::bind(const Type& unknown, const Type& type) {
  const Type resolved = resolve(type);
  const std::vector<const Object*> inside = unknowns(resolved);
  if (resolved != unknown && std::find(inside.begin(), inside.end(), unknown.object()) != inside.end() &&
      !resolved.is<IncompleteTypeNode>()) {
    why_ = ": the type would be infinite, since it would contain itself";
    return {};
  }
  if (resolved == unknown) return unknown;
  kept_.push_back(unknown);
  types_[unknown.object()] = resolved;
  settled_.push_back(unknown.object());
  return resolved;
}

PrimExpr TypeSolver::bind_dim(const PrimExpr& unknown, const PrimExpr& dim) {
  const auto* symbol = unknown.as<PrimVarNode>();
  bool contains_itself = false;
  visit_symbols(dim, [&](const PrimVarNode* other) { contains_itself = contains_itself || other == symbol; });
  if (contains_itself) return {};
  dims_[symbol] = dim;
  unknown_.erase(symbol);
  settled_.push_back(symbol);
  return dim;
}

void TypeSolver::settle_as_any(const PrimExpr& dim) {
  if (is_unknown_dim(dim)) bind_dim(dim, make_any());
}

bool TypeSolver::settle_all_dims() {
  std::vector<PrimExpr> left;
  for (const PrimExpr& dim : kept_dims_) {
    if (is_unknown_dim(dim)) left.push_back(dim);
  }
  for (const PrimExpr& dim : left) settle_as_any(dim);
  return !left.empty();
}

// Unifies dimensions. `?` does not settle an unknown dimension, because a later place may determine it.
PrimExpr TypeSolver::unify_dim(const PrimExpr& a_in, const PrimExpr& b_in) {
  const PrimExpr a = resolve_dim(a_in), b = resolve_dim(b_in);
  if (a == b) return a;
  if (is_any(a) || is_any(b)) return make_any();
  if (is_unknown_dim(a) && bind_dim(a, b)) return b;
  if (is_unknown_dim(b) && bind_dim(b, a)) return a;
  if (arith::is_equal(a, b)) return a;
  const bool is_a_open = !unknowns_in(a).empty();
  if (!is_a_open && unknowns_in(b).empty()) return {};
  const Outcome outcome = solve_dim(a, b);
  if (outcome == Outcome::none) return {};
  if (outcome == Outcome::settled) return resolve_dim(a);
  equations_.push_back({a, b, place_});
  return is_a_open ? b : a;
}

// Settles the one unknown of a == b where the equation is linear in it.
TypeSolver::Outcome TypeSolver::solve_dim(const PrimExpr& a, const PrimExpr& b) {
  const std::vector<PrimExpr> unknowns = unknowns_in(a - b);
  if (unknowns.size() != 1) return Outcome::open;
  const arith::Solution solution = arith::solve_for(unknowns[0].as<PrimVarNode>(), a, b);
  if (solution.is_none) {
    why_ = fmt::format(": no size {} makes {} equal to {}", to_string(unknowns[0]), to_string(a), to_string(b));
    return Outcome::none;
  }
  if (!solution.value) return Outcome::open;
  bind_dim(unknowns[0], solution.value);
  return Outcome::settled;
}

bool TypeSolver::solve_equations() {
  bool any = false;
  for (Equation& equation : equations_) {
    const PrimExpr a = resolve_dim(equation.a), b = resolve_dim(equation.b);
    if (equation.is_broken || is_any(a) || is_any(b)) continue;
    const Outcome outcome = solve_dim(a, b);
    any = any || outcome == Outcome::settled;
    if (outcome == Outcome::none) equation = {a, b, equation.place, true};
  }
  return any;
}

std::vector<TypeSolver::Equation> TypeSolver::take_broken() {
  std::vector<Equation> broken;
  for (Equation& equation : std::exchange(equations_, {})) {
    if (!equation.is_broken) {
      equation.a = resolve_dim(equation.a);
      equation.b = resolve_dim(equation.b);
    }
    const bool may_hold =
        !equation.is_broken && (is_any(equation.a) || is_any(equation.b) || !unknowns_in(equation.a).empty() ||
                                !unknowns_in(equation.b).empty() || arith::is_equal(equation.a, equation.b));
    if (!may_hold) broken.push_back(std::move(equation));
  }
  return broken;
}

Type TypeSolver::unify_tensors(const TensorType& a, const TensorType& b) {
  if (a->dtype != b->dtype || a->shape.size() != b->shape.size()) return {};
  Array<PrimExpr> dims;
  bool is_a = true;
  for (size_t i = 0; i < a->shape.size(); ++i) {
    const PrimExpr dim = unify_dim(a->shape[i], b->shape[i]);
    if (!dim) return {};
    is_a = is_a && (dim == a->shape[i] || (is_any(dim) && is_any(a->shape[i])));
    dims.push_back(dim);
  }
  return is_a ? a : make_tensor_type(dims, a->dtype);
}

std::optional<Array<Type>> TypeSolver::unify_all(const Array<Type>& a, const Array<Type>& b) {
  if (a.size() != b.size()) return std::nullopt;
  Array<Type> result;
  for (size_t i = 0; i < a.size(); ++i) {
    Type item = unify(a[i], b[i]);
    if (!item) return std::nullopt;
    result.push_back(std::move(item));
  }
  return result;
}

// Unifies an expected function type `a` with a given one `b`. Type parameters and symbols of `a` are arbitrary, those
// of `b` are instantiated to fit. Arguments are contravariant: `b` must take what `a` passes.
Type TypeSolver::unify_functions(const FuncTypeNode& a, const FuncTypeNode& b) {
  const size_t mark = owed_.size();
  const FuncType given = instantiate(b, {}, false);
  for (size_t i = mark; i < owed_.size(); ++i) owed_[i].granted = a.type_constraints;
  const auto args = unify_all(given->arg_types, a.arg_types);
  const Type ret = args ? unify(a.ret_type, given->ret_type) : Type();
  if (!ret) owed_.resize(mark);
  return ret ? make_func_type(*args, ret, a.type_params, a.type_constraints) : Type();
}

// Joins two branches. A function of one type cannot stand for a polymorphic one, so the other order is tried, too.
Type TypeSolver::join(const Type& a, const Type& b) {
  const auto* x = root_of(a).as<FuncTypeNode>();
  const auto* y = root_of(b).as<FuncTypeNode>();
  if (x != nullptr && y != nullptr && !x->type_params.empty() && y->type_params.empty()) return unify(b, a);
  const size_t mark = owed_.size();
  if (const Type joined = unify(a, b)) return joined;
  owed_.resize(mark);
  why_.clear();
  return unify(b, a);
}

Type TypeSolver::unify_known(const Type& a, const Type& b) {
  if (a->type_index() != b->type_index()) return {};
  if (a.is<TensorTypeNode>()) return unify_tensors(a.cast<TensorTypeNode>(), b.cast<TensorTypeNode>());
  const bool has_parts = a.is<TupleTypeNode>() || a.is<RefTypeNode>() || a.is<TypeCallNode>();
  if (!has_parts && same_type(a, b)) return a;
  if (const auto* x = a.as<FuncTypeNode>()) return unify_functions(*x, *b.as<FuncTypeNode>());
  const auto parts = has_parts ? unify_all(type_children(a), type_children(b)) : std::nullopt;
  return parts ? with_type_children(a, *parts) : Type();
}

Type TypeSolver::unify(const Type& a_in, const Type& b_in) {
  if (is_stack_low()) throw UserError("the type nests too deeply for the stack");
  const Type a = root_of(a_in), b = root_of(b_in);
  if (a == b) return a;
  if (a.is<IncompleteTypeNode>()) return bind(a, b);
  if (b.is<IncompleteTypeNode>()) return bind(b, a);
  const Type joined = unify_known(a, b);
  // An unknown that was settled as (3) and must be (?) too is (?), and so are those settled as it.
  for (const Type& side : {a_in, b_in}) {
    if (joined && side.is<IncompleteTypeNode>()) types_[last_unknown(side).object()] = joined;
  }
  return joined;
}

// Collects the symbols that functions inside a type bind.
static void inner_symbols(const Type& type, std::unordered_set<const PrimVarNode*>& out) {
  any_type(type, [&](const Type& at) {
    const auto* function = at.as<FuncTypeNode>();
    for (size_t i = 0; function != nullptr && i < function->arg_types.size(); ++i)
      visit_symbols(function->arg_types[i], [&](const PrimVarNode* symbol) { out.insert(symbol); });
    return false;
  });
}

FuncType TypeSolver::instantiate(const FuncTypeNode& function, const Array<Type>& type_args, bool is_global,
                                 std::vector<PrimExpr>* dims) {
  TypeBindings bindings;
  for (size_t i = 0; i < function.type_params.size(); ++i)
    bindings.types.emplace(function.type_params[i].get(), type_args.empty() ? make_incomplete_type() : type_args[i]);
  const auto is_own = [&](const PrimVarNode* symbol) {
    return !unknown_.contains(symbol) && !dims_.contains(symbol) && (is_global || !is_fixed_(symbol));
  };
  for (const Type& arg : function.arg_types) {
    visit_symbols(arg, [&](const PrimVarNode* symbol) {
      if (!is_own(symbol) || bindings.symbols.contains(symbol)) return;
      bindings.symbols.emplace(symbol, unknown_dim(symbol->name_hint));
      if (dims != nullptr) dims->push_back(bindings.symbols.at(symbol));
    });
  }
  if (bindings.types.empty() && bindings.symbols.empty() && function.type_constraints.empty()) return ref(&function);
  std::unordered_set<const PrimVarNode*> inner;
  inner_symbols(function.ret_type, inner);
  const auto can_bind = [&](const Object* object) {
    if (!object->is_instance<PrimVarNode>()) return false;
    const auto* symbol = static_cast<const PrimVarNode*>(object);
    return is_own(symbol) && !inner.contains(symbol);
  };
  const auto at_this_use = [&](const Type& type) { return relay::instantiate(type, can_bind, bindings); };
  for (const Type& constraint : function.type_constraints)
    owed_.push_back({constraint, at_this_use(constraint), {}, place_});
  return make_func_type(map_types(function.arg_types, at_this_use), at_this_use(function.ret_type));
}

}  // namespace headrace::relay
