// Type inference of calls, and the values of shape arithmetic.
#include "arith/canonical.h"
#include "relay/infer_state.h"

namespace headrace::relay {

namespace {

constexpr size_t kMaxValueElements = 64;

std::string describe(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

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
  if (tensor == nullptr || !(tensor->dtype.is_int() || tensor->dtype.is_uint() || tensor->dtype.is_bool()))
    return std::nullopt;
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
  bool changed = false;
  const Array<Expr> args = typed_all(node->args, changed);
  const Expr callee = op != nullptr ? node->op : typed_child(node->op, changed);
  const auto change = [&](CallNode& copy) {
    copy.op = callee;
    copy.args = args;
  };
  const Call call = changed ? Call(copy_with(*node, change)) : node;
  if (!all_typed(node->args) || (op == nullptr && !typed(node->op).type)) return finish(node, call, {});
  std::vector<Type> arg_types;
  for (const Expr& arg : node->args) arg_types.push_back(typed(arg).type);
  try {
    Type type;
    if (op == nullptr) {
      type = function_call_type(call, typed(node->op).type, arg_types);
    } else {
      type = call->has_checked_type() ? call->checked_type() : op_call_type(node, call, arg_types);
    }
    finish(node, call, type);
    if (op != nullptr) infer_call_value(node, call, type, arg_types);
  } catch (const UserError& error) {
    errors_.add(error);
    memo_[node.get()] = {call, {}};
  }
}

// Throws at the call when it is no well-formed call of the op.
bool Inferencer::check_op_call(const Call& call, const OpNode& op) {
  if (op.num_inputs >= 0 && call->args.size() != static_cast<size_t>(op.num_inputs))
    throw_at(call->span, op.name, fmt::format("it takes {} arguments, got {}", op.num_inputs, call->args.size()));
  if (!op.attrs_type_key.empty() && (!call->attrs || call->attrs->key() != op.attrs_type_key)) {
    throw_at(call->span, op.name,
             fmt::format("its attributes are {}, got {}", op.attrs_type_key,
                         call->attrs ? std::string(call->attrs->key()) : "none"));
  }
  return true;
}

Type Inferencer::op_call_type(const Call& original, const Call& call, const std::vector<Type>& arg_types) {
  const OpNode& op = *call->as_op();
  check_op_call(call, op);
  const TypeRelationFn* relation = op.find(kTypeRelation);
  if (relation == nullptr) throw_at(call->span, op.name, "the op has no type relation and cannot be inferred");
  const RelationInput input = relation_input(original, call, arg_types);
  const Type type = (*relation)(input);
  if (!type)
    throw_at(call->span, op.name,
             fmt::format("the argument types do not determine the result: {}", describe(arg_types)));
  return normalise_result(input, type);
}

Type Inferencer::function_call_type(const Call& call, const Type& callee, const std::vector<Type>& arg_types) {
  const std::string name = callee_name(call->op);
  const auto* function = callee.as<FuncTypeNode>();
  if (function == nullptr)
    throw_at(call->span, name, fmt::format("a value of {} is called; it is no function", to_string(callee)));
  if (function->arg_types.size() != arg_types.size())
    throw_at(call->span, name,
             fmt::format("it takes {} arguments, got {}", function->arg_types.size(), arg_types.size()));
  const size_t num_params = function->type_params.size();
  if (!call->type_args.empty() && call->type_args.size() != num_params)
    throw_at(call->span, name, fmt::format("it takes {} type arguments, got {}", num_params, call->type_args.size()));
  const bool is_global = call->op.is<GlobalVarNode>();
  std::unordered_set<const Object*> params;
  TypeBindings bindings;
  for (size_t i = 0; i < num_params; ++i) {
    params.insert(function->type_params[i].get());
    if (!call->type_args.empty()) bindings.types.emplace(function->type_params[i].get(), call->type_args[i]);
  }
  const auto can_bind = [&](const Object* object) {
    if (!object->is_instance<PrimVarNode>()) return params.contains(object);
    const auto it = symbols_.find(static_cast<const PrimVarNode*>(object));
    return is_global || it == symbols_.end() || it->second == 0;
  };
  for (size_t i = 0; i < arg_types.size(); ++i) bind_type(function->arg_types[i], arg_types[i], can_bind, bindings);
  // What no argument tells is left open: Nil() is a List[_].
  for (const TypeVar& param : function->type_params) bindings.types.try_emplace(param.get(), make_incomplete_type());
  for (size_t i = 0; i < arg_types.size(); ++i) {
    const Type expected = instantiate(function->arg_types[i], can_bind, bindings);
    if (!join_types(expected, arg_types[i], true))
      throw_at(call->span, name,
               fmt::format("argument {} is {}, expected {}", i, to_string(arg_types[i]), to_string(expected)));
  }
  return instantiate(function->ret_type, can_bind, bindings);
}

RelationInput Inferencer::relation_input(const Call& original, const Call& call, const std::vector<Type>& arg_types) {
  return RelationInput{*call, arg_types, [this, original](size_t i) { return value_of(original->args.at(i)); },
                       [original](size_t i) {
                         const Expr arg = original->args.at(i);
                         const auto* constant = arg.as<ConstantNode>();
                         return constant != nullptr ? constant->data : NDArray();
                       }};
}

std::optional<std::vector<PrimExpr>> Inferencer::value_of(const Expr& original) {
  const auto it = values_.find(original.get());
  if (it != values_.end()) return it->second;
  const auto* constant = original.as<ConstantNode>();
  if (constant == nullptr || !value_elements(constant->tensor_type())) return std::nullopt;
  const NDArray data = constant->data.to_dense();
  std::vector<PrimExpr> value;
  for (int64_t i = 0; i < data.num_elements(); ++i) value.push_back(make_int(element_as_int(data.tensor(), i)));
  return values_[original.get()] = std::move(value);
}

void Inferencer::infer_call_value(const Call& original, const Call& call, const Type& type,
                                  const std::vector<Type>& arg_types) {
  const auto count = value_elements(type);
  const ValueInferenceFn* infer = call->as_op()->find(kValueInference);
  if (!count || infer == nullptr) return;
  auto value = (*infer)(relation_input(original, call, arg_types));
  if (value) set_value(original, std::move(*value), *count);
}

void Inferencer::set_value(const Expr& original, std::vector<PrimExpr> value, size_t expected) {
  HEADRACE_CHECK(value.size() == expected, "value inference gives {} elements for {}", value.size(), expected);
  for (PrimExpr& element : value) {
    if (const auto number = as_int(element)) {
      element = make_int(*number);
    } else {
      element = element->dtype == kIndexType ? arith::simplify_dim(element) : make_any();
    }
  }
  values_[original.get()] = std::move(value);
}

}  // namespace headrace::relay
