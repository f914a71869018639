// Types of relay expressions.
#pragma once

#include "ir/prim_expr.h"

namespace headrace {

struct TypeNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "ir.Type";
  static constexpr int32_t child_slots = 20;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<TypeNode>& f);
  Span span;
};
using Type = Ref<TypeNode>;

// A scalar that is not a tensor; variables of tir have such types.
struct PrimTypeNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "ir.PrimType";
  static constexpr bool is_final = true;
  static void fields(FieldList<PrimTypeNode>& f);
  DataType dtype;
};

// A tensor. A dimension is an integer, a symbol, an expression of them, or `?`.
struct TensorTypeNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.TensorType";
  static constexpr bool is_final = true;
  static void fields(FieldList<TensorTypeNode>& f);
  Array<PrimExpr> shape;
  DataType dtype;
  // Returns the dimensions as integers; UserError that shows the type when one is symbolic.
  Shape concrete_shape() const;
};
using TensorType = Ref<TensorTypeNode>;

struct TupleTypeNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.TupleType";
  static constexpr bool is_final = true;
  static void fields(FieldList<TupleTypeNode>& f);
  Array<Type> items;
};
using TupleType = Ref<TupleTypeNode>;

enum class TypeKind : uint8_t { type, shape_var, base_type, shape, constraint, adt_handle, type_data };
constexpr TypeKind greatest(TypeKind) { return TypeKind::type_data; }
// Returns the kind's word: "type", "shape_var", ...
std::string_view name_of(TypeKind kind);

struct TypeVarNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.TypeVar";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  static void fields(FieldList<TypeVarNode>& f);
  std::string name_hint;
  TypeKind kind = TypeKind::type;
};
using TypeVar = Ref<TypeVarNode>;

struct GlobalTypeVarNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.GlobalTypeVar";
  static constexpr bool is_final = true;
  static void fields(FieldList<GlobalTypeVarNode>& f);
  std::string name_hint;
  TypeKind kind = TypeKind::adt_handle;
};
using GlobalTypeVar = Ref<GlobalTypeVarNode>;

struct FuncTypeNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.FuncType";
  static constexpr bool is_final = true;
  static void fields(FieldList<FuncTypeNode>& f);
  Array<TypeVar> type_params;
  Array<Type> arg_types;
  Type ret_type;
  Array<Type> type_constraints;
};
using FuncType = Ref<FuncTypeNode>;

// The type of a mutable cell.
struct RefTypeNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.RefType";
  static constexpr bool is_final = true;
  static void fields(FieldList<RefTypeNode>& f);
  Type value;
};

// A type function applied to arguments: List[Tensor[(2), float32]].
struct TypeCallNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.TypeCall";
  static constexpr bool is_final = true;
  static void fields(FieldList<TypeCallNode>& f);
  Type func;
  Array<Type> args;
};

// A type that is not known yet and that inference solves for.
struct IncompleteTypeNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.IncompleteType";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  static void fields(FieldList<IncompleteTypeNode>& f);
  TypeKind kind = TypeKind::type;
};

// A constraint between argument and result types, named after an op's relation.
struct TypeRelationNode : TypeNode {
  using Parent = TypeNode;
  static constexpr std::string_view type_key = "relay.TypeRelation";
  static constexpr bool is_final = true;
  static void fields(FieldList<TypeRelationNode>& f);
  std::string name;
  Array<Type> args;
  int64_t num_inputs = 0;
  ObjectRef attrs;
};

Type make_prim_type(DataType dtype);
TensorType make_tensor_type(Array<PrimExpr> shape, DataType dtype = DataType::float_(32));
TensorType make_tensor_type(const Shape& shape, DataType dtype = DataType::float_(32));
TensorType make_scalar_type(DataType dtype);
TupleType make_tuple_type(Array<Type> items);
TypeVar make_type_var(std::string name, TypeKind kind = TypeKind::type);
GlobalTypeVar make_global_type_var(std::string name, TypeKind kind = TypeKind::adt_handle);
FuncType make_func_type(Array<Type> arg_types, Type ret_type, Array<TypeVar> type_params = {},
                        Array<Type> type_constraints = {});
Type make_ref_type(Type value);
Type make_type_call(Type func, Array<Type> args);
Type make_incomplete_type(TypeKind kind = TypeKind::type);

// Returns the types of a value's tensors: the type itself, or the leaves of a tuple's fields, in order.
std::vector<Type> leaves_of(const Type& type);
// Which of a tuple's leaves are those of its field `index`.
struct LeafRange {
  size_t begin, count;
};
LeafRange leaves_of_field(const TupleTypeNode& tuple, int64_t index);

// Returns the text: "Tensor[(1, n), float32]".
std::string to_string(const Type& type);

}  // namespace headrace
