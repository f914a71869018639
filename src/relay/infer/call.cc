// Type inference of calls, and the values of shape arithmetic.
#include "arith/canonical.h"
#include "base/count_of.h"
#include "relay/infer/inferencer.h"
#include "relay/user_attrs.h"

namespace headrace::relay {

namespace {

constexpr size_t kMaxValueElements = 64;

std::string callee_name(const Expr& callee) {
  if (const auto* global = callee.as<GlobalVarNode>()) return "@" + global->name_hint;
  if (const auto* var = callee.as<VarNode>()) return "%" + var->name_hint;
  if (const auto* constructor = callee.as<ConstructorNode>()) return constructor->name_hint;
  return "fn";
}

// Canonical dimensions; an error of the op when one is negative.
Type normalise_result(const RelationInput& input, const Type& type) {
  if (const auto* tuple = type.as<TupleTypeNode>()) {
    Array<Type> items;
    for (const Type& item : tuple->items) items.push_back(normalise_result(input, item));
    return make_tuple_type(items);
  }
  const auto* tensor = type.as<TensorTypeNode>();
  if (tensor == nullptr) return type;
  bool symbolic = false;
  for (const PrimExpr& dim : tensor->shape) {
    const auto value = as_int(dim);
    symbolic = symbolic || !value;
    if (value && *value < 0) input.fail(fmt::format("the result would have a negative dimension: {}", to_string(type)));
  }
  if (!symbolic) return type;
  Array<PrimExpr> dims;
  for (const PrimExpr& dim : tensor->shape) dims.push_back(arith::simplify_dim(dim));
  return make_tensor_type(dims, tensor->dtype);
}

bool is_integer(DataType dtype) { return dtype.is_int() || dtype.is_uint() || dtype.is_bool(); }

bool fits(int64_t number, DataType dtype) {
  if (dtype.is_bool()) return number == 0 || number == 1;
  if (dtype.bits() >= 64) return dtype.is_int() || number >= 0;
  const int64_t count = int64_t{1} << dtype.bits();
  return dtype.is_int() ? number >= -count / 2 && number < count / 2 : number >= 0 && number < count;
}

// Returns the element that unbounded arithmetic computes as `value`; `?` where a tensor of `dtype` may have wrapped.
PrimExpr element_of(const PrimExpr& value, DataType dtype) {
  if (const auto number = as_int(value)) return fits(*number, dtype) ? make_int(*number) : make_any();
  if (value->dtype != kIndexType) return make_any();
  const PrimExpr simple = arith::simplify_dim(value);
  const bool is_size = simple.is<PrimVarNode>() && dtype.bits() >= 32;
  return dtype == kIndexType || is_size ? simple : make_any();
}

}  // namespace

std::optional<size_t> value_elements(const Type& type) {
  if (const auto* tuple = type.as<TupleTypeNode>()) {
    size_t total = 0;
    for (const Type& item : tuple->items) {
      const auto count = value_elements(item);
      if (!count || total + *count > kMaxValueElements) return std::nullopt;
      total += *count;
    }
    return total;
  }
  const auto* tensor = type.as<TensorTypeNode>();
  if (tensor == nullptr || !is_integer(tensor->dtype) || !tensor->dtype.is_scalar()) return std::nullopt;
  size_t total = 1;
  for (const PrimExpr& dim : tensor->shape) {
    const auto value = as_int(dim);
    if (!value || *value < 0 || *value > static_cast<int64_t>(kMaxValueElements)) return std::nullopt;
    total *= static_cast<size_t>(*value);
    if (total > kMaxValueElements) return std::nullopt;
  }
  return total;
}

void Inferencer::visit_call(const Call& node, int stage) {
  const OpNode* op = node->as_op();
  if (stage == 0) {
    later(node, 1);
    need_all(node->args);
    return op != nullptr ? void() : need(node->op);
  }
  std::vector<Type> arg_types;
  for (const Expr& arg : node->args) arg_types.push_back(type_of(arg));
  const bool all_known = std::all_of(arg_types.begin(), arg_types.end(), [](const Type& t) { return t.defined(); });
  if (!all_known || (op == nullptr && !type_of(node->op))) return finish(node, {});
  if (const auto found = constraint_of_.find(node.get()); found != constraint_of_.end())
    return visit_constraint(constraints_[found->second], arg_types);
  try {
    op != nullptr ? visit_op_call(node, arg_types) : visit_function_call(node, arg_types);
  } catch (const UserError& error) {
    if (!is_plain(error)) throw;
    errors_.add(error);
    memo_[node.get()] = {node, {}};
    waiting_nodes_.erase(node.get());
  }
}

// Throws at the call when it is not a well-formed call of the op.
static void check_op_call(const Call& call, const OpNode& op) {
  if (op.num_inputs >= 0 && call->args.size() != static_cast<size_t>(op.num_inputs)) {
    std::vector<std::string> names;
    for (const OpArgument& argument : op.arguments) names.push_back(argument.name);
    throw_at(call->span, op.name,
             fmt::format("{} takes {}{}, got {}", op.name, count_of(op.num_inputs, "argument"),
                         names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")), call->args.size()));
  }
  // The relation of an op with a schema says which attributes there are.
  const bool has_struct = !op.attrs_type_key.empty() && op.find(kAttrSchema) == nullptr;
  if (has_struct && !call->attrs)
    throw_at(call->span, op.name,
             fmt::format("the call has no attributes, and the op needs {}; in Python relay.{}(...) makes them, or "
                         "op.make_attrs(...) for relay.Call",
                         op.attrs_type_key, op.name));
  if (has_struct && call->attrs->key() != op.attrs_type_key)
    throw_at(call->span, op.name, fmt::format("its attributes are {}, got {}", op.attrs_type_key, call->attrs->key()));
}

// Returns whether a typed call keeps its type: its arguments still have their types, and none of them is followed as a
// value that may have changed. A constant cannot change; a variable may be bound again.
static bool keeps_its_type(const Call& call, const std::vector<Type>& arg_types) {
  if (!call->has_checked_type()) return false;
  for (size_t i = 0; i < arg_types.size(); ++i) {
    const Expr& arg = call->args[i];
    if (!arg->has_checked_type()) return false;
    if (arg->checked_type() != arg_types[i] && !same_type(arg->checked_type(), arg_types[i])) return false;
    if (!arg.is<ConstantNode>() && value_elements(arg_types[i])) return false;
  }
  return true;
}

void Inferencer::visit_op_call(const Call& node, const std::vector<Type>& arg_types) {
  const Type type = keeps_its_type(node, arg_types) ? node->checked_type() : relate(node, arg_types);
  if (!type) return wait(node, arg_types);
  finish(node, type);
  infer_call_value(node, type, arg_types);
}

// Asks the op's relation for the result type; null while the arguments do not determine it. An unknown dimension is
// hidden from the relation, because it may be any number.
Type Inferencer::relate(const Call& call, const std::vector<Type>& arg_types) {
  const OpNode& op = *call->as_op();
  check_op_call(call, op);
  const TypeRelationFn* relation = op.find(kTypeRelation);
  if (relation == nullptr)
    throw_at(call->span, op.name,
             "the op has no type relation and cannot be inferred; in Python op.add_type_rel gives it one");
  for (const Type& type : arg_types) {
    for (const Object* unknown : solver_.unknowns(type)) {
      if (unknown->is_instance<PrimVarNode>()) return {};
    }
  }
  const RelationInput input = relation_input(call, arg_types);
  const Type type = (*relation)(input);
  return type ? normalise_result(input, type) : type;
}

// Returns the callee's signature at this call. `type_args` are its type parameters, unknowns if the call names none.
// The unknown dimensions for its symbols are appended to `dims`.
FuncType Inferencer::callee_type(const Call& call, size_t num_args, Array<Type>& type_args,
                                 std::vector<PrimExpr>& dims) {
  const std::string name = callee_name(call->op);
  const Type type = type_of(call->op);
  const auto* function = type.as<FuncTypeNode>();
  if (function == nullptr)
    throw_at(call->span, name, fmt::format("a value of type {} is called, which is not a function", to_string(type)));
  if (function->arg_types.size() != num_args)
    throw_at(call->span, name,
             fmt::format("it takes {}, got {}", count_of(function->arg_types.size(), "argument"), num_args));
  const size_t num_params = function->type_params.size();
  if (!call->type_args.empty() && call->type_args.size() != num_params)
    throw_at(call->span, name,
             fmt::format("it takes {}, got {}", count_of(num_params, "type argument"), call->type_args.size()));
  for (const Type& arg : call->type_args) {
    if (const std::string fault = annotation_fault(arg); !fault.empty()) throw_at(call->span, name, fault);
  }
  if (monomorphic_.contains(memo_.at(call->op.get()).type.object())) return ref(function);
  type_args = call->type_args;
  while (type_args.size() < num_params) type_args.push_back(make_incomplete_type());
  return solver_.instantiate(*function, type_args, call->op.is<GlobalVarNode>(), &dims);
}

void Inferencer::unify_arguments(const Call& call, const FuncTypeNode& function, const std::vector<Type>& arg_types) {
  for (size_t i = 0; i < arg_types.size(); ++i) {
    const Type& expected = function.arg_types[i];
    if (!solver_.unify(expected, arg_types[i]))
      throw_at(call->span, callee_name(call->op),
               fmt::format("argument {} is {}, expected {}{}", i, to_string(solver_.resolve(arg_types[i])),
                           to_string(solver_.resolve(expected)), solver_.why()));
  }
}

size_t Inferencer::count_unknown(const std::vector<PrimExpr>& dims) const {
  const auto is_unknown = [&](const PrimExpr& dim) { return solver_.is_unknown_dim(dim); };
  return static_cast<size_t>(std::count_if(dims.begin(), dims.end(), is_unknown));
}

void Inferencer::visit_function_call(const Call& node, const std::vector<Type>& arg_types) {
  const Type callee = type_of(node->op);
  if (callee.is<IncompleteTypeNode>()) {
    const Type ret = make_incomplete_type();
    const Type called = make_func_type(Array<Type>(arg_types), ret);
    if (!solver_.unify(callee, called))
      throw_at(node->span, callee_name(node->op), "a function cannot be its own argument" + solver_.why());
    return finish(node, solver_.resolve(ret));
  }
  Array<Type> type_args;
  std::vector<PrimExpr> dims;
  const FuncType function = callee_type(node, arg_types.size(), type_args, dims);
  // Repeats while the last round settled dimensions, because n + m may be solvable once n is known.
  size_t before = dims.size() + 1;
  for (size_t open = dims.size(); open < before; open = count_unknown(dims)) {
    unify_arguments(node, *function, arg_types);
    before = open;
  }
  const auto is_left = [&](const Type& arg) { return solver_.is_open(arg); };
  if (node->type_args.empty() && std::any_of(type_args.begin(), type_args.end(), is_left))
    left_type_args_[node.get()] = type_args;
  const bool is_open =
      std::any_of(arg_types.begin(), arg_types.end(), [&](const Type& type) { return solver_.is_open(type); });
  if (is_open) {
    open_calls_.push_back({node, function, arg_types});
  } else {
    for (const PrimExpr& dim : dims) solver_.settle_as_any(dim);
  }
  finish(node, solver_.resolve(function->ret_type));
}

RelationInput Inferencer::relation_input(const Call& call, const std::vector<Type>& arg_types) {
  return RelationInput{*call, arg_types, [this, call](size_t i) { return value_of(call->args.at(i)); },
                       [call](size_t i) {
                         const Expr arg = call->args.at(i);
                         const auto* constant = arg.as<ConstantNode>();
                         return constant != nullptr ? constant->data : NDArray();
                       },
                       [this, call, &arg_types](size_t i, const Type& type) {
                         if (arg_types.at(i).is<IncompleteTypeNode>()) assumed_.push_back({arg_types[i], type, call});
                       }};
}

std::optional<std::vector<PrimExpr>> Inferencer::value_of(const Expr& expr) {
  Expr original = expr;
  auto it = values_.find(original.get());
  for (auto to = bound_value_.find(original.get()); it == values_.end() && to != bound_value_.end();
       to = bound_value_.find(original.get())) {
    original = to->second;
    it = values_.find(original.get());
  }
  if (it != values_.end()) return it->second;
  const auto* constant = original.as<ConstantNode>();
  if (constant == nullptr || !value_elements(constant->tensor_type())) return std::nullopt;
  auto value = known_integers(constant->data.to_dense());
  if (!value) return std::nullopt;
  return values_[original.get()] = std::move(*value);
}

void Inferencer::infer_call_value(const Call& call, const Type& type, const std::vector<Type>& arg_types) {
  const auto count = value_elements(type);
  const ValueInferenceFn* infer = call->as_op()->find(kValueInference);
  if (!count || infer == nullptr) return;
  auto value = (*infer)(relation_input(call, arg_types));
  if (!value) return;
  if (value->size() != *count)
    throw_at(call->span, call->as_op()->name,
             fmt::format("its result has {} elements and its type {}: a constant was written to after its type was "
                         "inferred; copy an array before it becomes a constant, or make a new constant",
                         value->size(), *count));
  size_t at = 0;
  for (const Type& leaf : leaves_of(type)) {
    for (size_t left = value_elements(leaf).value_or(0); left > 0; --left, ++at)
      (*value)[at] = element_of((*value)[at], leaf.as<TensorTypeNode>()->dtype);
  }
  values_[call.get()] = std::move(*value);
}

}  // namespace headrace::relay
