#include "ir/type.h"

namespace headrace {

Shape TensorTypeNode::concrete_shape() const {
  auto result = as_shape(shape);
  if (!result) {
    throw_user_error("{} has a symbolic dimension; give its value (compile: --shape NAME=...)",
                     to_string(Type(const_cast<TensorTypeNode*>(this))));
  }
  return *result;
}

Type make_prim_type(DataType dtype) {
  auto node = make_object<PrimTypeNode>();
  node->dtype = dtype;
  return node;
}

TensorType make_tensor_type(Array<PrimExpr> shape, DataType dtype) {
  auto node = make_object<TensorTypeNode>();
  node->shape = std::move(shape);
  node->dtype = dtype;
  return node;
}

TensorType make_tensor_type(const Shape& shape, DataType dtype) { return make_tensor_type(to_dims(shape), dtype); }
TensorType make_scalar_type(DataType dtype) { return make_tensor_type(Array<PrimExpr>(), dtype); }

TupleType make_tuple_type(Array<Type> items) {
  auto node = make_object<TupleTypeNode>();
  node->items = std::move(items);
  return node;
}

TypeVar make_type_var(std::string name, TypeKind kind) {
  auto node = make_object<TypeVarNode>();
  node->name_hint = std::move(name);
  node->kind = kind;
  return node;
}

GlobalTypeVar make_global_type_var(std::string name, TypeKind kind) {
  auto node = make_object<GlobalTypeVarNode>();
  node->name_hint = std::move(name);
  node->kind = kind;
  return node;
}

FuncType make_func_type(Array<Type> arg_types, Type ret_type, Array<TypeVar> type_params,
                        Array<Type> type_constraints) {
  auto node = make_object<FuncTypeNode>();
  node->arg_types = std::move(arg_types);
  node->ret_type = std::move(ret_type);
  node->type_params = std::move(type_params);
  node->type_constraints = std::move(type_constraints);
  return node;
}

Type make_ref_type(Type value) {
  auto node = make_object<RefTypeNode>();
  node->value = std::move(value);
  return node;
}

Type make_type_call(Type func, Array<Type> args) {
  auto node = make_object<TypeCallNode>();
  node->func = std::move(func);
  node->args = std::move(args);
  return node;
}

Type make_incomplete_type(TypeKind kind) {
  auto node = make_object<IncompleteTypeNode>();
  node->kind = kind;
  return node;
}

}  // namespace headrace
