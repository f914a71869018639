#include "ir/type.h"

#include "ir/map_operands.h"
#include "ir/max_dim.h"

namespace headrace {

void TypeNode::fields(FieldList<TypeNode>& f) { f.field<&TypeNode::span>("span", {.ignore = true, .optional = true}); }

void PrimTypeNode::fields(FieldList<PrimTypeNode>& f) { f.field<&PrimTypeNode::dtype>("dtype"); }

static Value shape_as_dimensions(const Value& given) {
  return given.is<Array<PrimExpr>>() ? Value(map_items(given.as<Array<PrimExpr>>(), to_dimension)) : given;
}

void TensorTypeNode::fields(FieldList<TensorTypeNode>& f) {
  f.field<&TensorTypeNode::shape>("shape", {.convert = shape_as_dimensions}).field<&TensorTypeNode::dtype>("dtype");
}

void TupleTypeNode::fields(FieldList<TupleTypeNode>& f) { f.field<&TupleTypeNode::items>("fields"); }

// Type variables are bound again by each type and function that declares them (object/structural_fields.h).
void TypeVarNode::fields(FieldList<TypeVarNode>& f) {
  f.field<&TypeVarNode::name_hint>("name_hint", {.ignore = true})
      .field<&TypeVarNode::kind>("kind", {.def_recursive = true});
}

void GlobalTypeVarNode::fields(FieldList<GlobalTypeVarNode>& f) {
  f.field<&GlobalTypeVarNode::name_hint>("name_hint").field<&GlobalTypeVarNode::kind>("kind");
}

void FuncTypeNode::fields(FieldList<FuncTypeNode>& f) {
  f.field<&FuncTypeNode::type_params>("type_params", {.def_once = true})
      .field<&FuncTypeNode::arg_types>("arg_types")
      .field<&FuncTypeNode::ret_type>("ret_type")
      .field<&FuncTypeNode::type_constraints>("type_constraints");
}

void RefTypeNode::fields(FieldList<RefTypeNode>& f) { f.field<&RefTypeNode::value>("value"); }

void TypeCallNode::fields(FieldList<TypeCallNode>& f) {
  f.field<&TypeCallNode::func>("func").field<&TypeCallNode::args>("args");
}

// Programs of equal text must be equal, so an unknown type compares by its kind only.
void IncompleteTypeNode::fields(FieldList<IncompleteTypeNode>& f) {
  f.field<&IncompleteTypeNode::kind>("kind", {.def_once = true});
}

void TypeRelationNode::fields(FieldList<TypeRelationNode>& f) {
  f.field<&TypeRelationNode::name>("name")
      .field<&TypeRelationNode::args>("args")
      .field<&TypeRelationNode::num_inputs>("num_inputs")
      .field<&TypeRelationNode::attrs>("attrs", {.optional = true});
}

Shape TensorTypeNode::concrete_shape() const {
  auto result = as_shape(shape);
  if (!result) {
    throw_user_error("{} has a symbolic dimension where a number is needed; fix the shapes of the inputs",
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
  for (const PrimExpr& dim : shape) {
    const auto value = dim ? as_int(dim) : std::nullopt;
    if (value && *value > kMaxDim)
      throw_user_error("a tensor with a dimension of {} is more than any machine holds", *value);
  }
  auto node = make_object<TensorTypeNode>();
  node->shape = map_items(shape, to_dimension);
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

std::string_view name_of(TypeKind kind) {
  static constexpr std::string_view kNames[] = {"type",       "shape_var",  "base_type", "shape",
                                                "constraint", "adt_handle", "type_data"};
  return kNames[static_cast<size_t>(kind)];
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

std::vector<Type> leaves_of(const Type& type) {
  std::vector<Type> leaves, pending{type};
  while (!pending.empty()) {
    const Type at = pending.back();
    pending.pop_back();
    if (const auto* tuple = at.as<TupleTypeNode>()) {
      pending.insert(pending.end(), std::make_reverse_iterator(tuple->items.end()),
                     std::make_reverse_iterator(tuple->items.begin()));
    } else {
      leaves.push_back(at);
    }
  }
  return leaves;
}

static size_t count_leaves(const Type& type) { return type.is<TupleTypeNode>() ? leaves_of(type).size() : 1; }

LeafRange leaves_of_field(const TupleTypeNode& tuple, int64_t index) {
  LeafRange range{0, count_leaves(tuple.items[static_cast<size_t>(index)])};
  for (size_t i = 0; i < static_cast<size_t>(index); ++i) range.begin += count_leaves(tuple.items[i]);
  return range;
}

// A data type without parameters is its name alone.
Type make_type_call(Type func, Array<Type> args) {
  if (args.empty() && func.is<GlobalTypeVarNode>()) return func;
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
