// A small language for the tests of this room: types with symbols, variables, let, functions, calls.
#pragma once

#include "object/array.h"
#include "object/map.h"
#include "object/reflect.h"

namespace headrace::testing {

struct ExprNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "test.Expr";
  static constexpr int32_t child_slots = 12;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
};
using Expr = Ref<ExprNode>;

// A symbol of a type: a variable that parameters bind through their types.
struct SymbolNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Symbol";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  std::string name;
  static void fields(FieldList<SymbolNode>& f) { f.field<&SymbolNode::name>("name", {.ignore = true}); }
};

struct TypeNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Type";
  static constexpr bool is_final = true;
  Array<Expr> dims;
  static void fields(FieldList<TypeNode>& f) { f.field<&TypeNode::dims>("dims"); }
};
using Type = Ref<TypeNode>;

struct VarNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Var";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  std::string name;
  Type type;
  static void fields(FieldList<VarNode>& f) {
    f.field<&VarNode::name>("name", {.ignore = true});
    f.field<&VarNode::type>("type", {.optional = true});
  }
};
using Var = Ref<VarNode>;

struct IntNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Int";
  static constexpr bool is_final = true;
  int64_t value = 0;
  static void fields(FieldList<IntNode>& f) { f.field<&IntNode::value>("value"); }
};

// Shared calls are shared work: a dag.
struct CallNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Call";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::dag;
  std::string op;
  Array<Expr> args;
  Map<std::string, Value> attrs;
  Value note;
  static void fields(FieldList<CallNode>& f) {
    f.field<&CallNode::op>("op");
    f.field<&CallNode::args>("args");
    f.field<&CallNode::attrs>("attrs", {.default_value = Map<std::string, Value>(), .has_default = true});
    f.field<&CallNode::note>("note", {.ignore = true, .optional = true});
  }
};

struct TupleNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Tuple";
  static constexpr bool is_final = true;
  Array<Expr> items;
  static void fields(FieldList<TupleNode>& f) { f.field<&TupleNode::items>("items"); }
};

struct LetNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Let";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::dag;
  Expr value;
  Var var;
  Expr body;
  static void fields(FieldList<LetNode>& f) {
    f.field<&LetNode::value>("value");
    f.field<&LetNode::var>("var", {.def_once = true});
    f.field<&LetNode::body>("body");
  }
};

struct FunctionNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Function";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::dag;
  Array<Var> params;
  Expr body;
  static void fields(FieldList<FunctionNode>& f) {
    f.field<&FunctionNode::params>("params", {.def_recursive = true});
    f.field<&FunctionNode::body>("body");
  }
};

// Compared by content, and at once when it is one node.
struct ConstantNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Constant";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  Value value;
  static void fields(FieldList<ConstantNode>& f) { f.field<&ConstantNode::value>("value", {.optional = true}); }
};

struct OpNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "test.Op";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::unique;
};

inline Var make_var(std::string name, Type type = {}) {
  auto node = make_object<VarNode>();
  node->name = std::move(name);
  node->type = std::move(type);
  return node;
}
inline Expr make_symbol(std::string name) {
  auto node = make_object<SymbolNode>();
  node->name = std::move(name);
  return node;
}
inline Type make_type(Array<Expr> dims) {
  auto node = make_object<TypeNode>();
  node->dims = std::move(dims);
  return node;
}
inline Expr make_int(int64_t value) {
  auto node = make_object<IntNode>();
  node->value = value;
  return node;
}
inline Ref<CallNode> make_call(std::string op, Array<Expr> args, Map<std::string, Value> attrs = {}) {
  auto node = make_object<CallNode>();
  node->op = std::move(op);
  node->args = std::move(args);
  node->attrs = std::move(attrs);
  return node;
}
inline Expr make_tuple(Array<Expr> items) {
  auto node = make_object<TupleNode>();
  node->items = std::move(items);
  return node;
}
inline Expr make_let(Var var, Expr value, Expr body) {
  auto node = make_object<LetNode>();
  node->var = std::move(var);
  node->value = std::move(value);
  node->body = std::move(body);
  return node;
}
inline Expr make_function(Array<Var> params, Expr body) {
  auto node = make_object<FunctionNode>();
  node->params = std::move(params);
  node->body = std::move(body);
  return node;
}
inline Expr make_constant(Value value) {
  auto node = make_object<ConstantNode>();
  node->value = std::move(value);
  return node;
}

}  // namespace headrace::testing
