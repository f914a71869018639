// The nodes of relay.
#pragma once

#include "ir/module.h"
#include "object/string.h"
#include "tensor/ndarray.h"

namespace headrace::relay {

struct ConstantNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Constant";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::constant;
  static void fields(FieldList<ConstantNode>& f) { f.field<&ConstantNode::data>("data"); }
  NDArray data;
  TensorType tensor_type() const;
};
using Constant = Ref<ConstantNode>;

struct VarNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Var";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  static void fields(FieldList<VarNode>& f) {
    f.field<&VarNode::name_hint>("name_hint", {.ignore = true})
        .field<&VarNode::type_annotation>("type_annotation", {.optional = true});
  }
  std::string name_hint;
  Type type_annotation;  // null: to be inferred
};
using Var = Ref<VarNode>;

struct FunctionNode : BaseFuncNode {
  using Parent = BaseFuncNode;
  static constexpr std::string_view type_key = "relay.Function";
  static constexpr bool is_final = true;
  static void fields(FieldList<FunctionNode>& f) {
    f.field<&FunctionNode::type_params>("type_params", {.def_once = true})
        .field<&FunctionNode::params>("params", {.def_recursive = true})
        .field<&FunctionNode::ret_type>("ret_type", {.optional = true})
        .field<&FunctionNode::body>("body");
  }
  Array<TypeVar> type_params;
  Array<Var> params;
  Type ret_type;  // null: to be inferred
  Expr body;
};
using Function = Ref<FunctionNode>;

struct CallNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Call";
  static constexpr bool is_final = true;
  static void fields(FieldList<CallNode>& f) {
    f.field<&CallNode::op>("op")
        .field<&CallNode::args>("args")
        .field<&CallNode::attrs>("attrs", {.optional = true})
        .field<&CallNode::type_args>("type_args", {.ignore = true});
  }
  Expr op;  // an Op, a GlobalVar, a Constructor, or anything that is a function
  Array<Expr> args;
  Attrs attrs;
  Array<Type> type_args;
  // The op when it is one, else null.
  const OpNode* as_op() const { return op.as<OpNode>(); }
  // The attributes as a T; InternalError when they are of another kind.
  template <typename T>
  const T& attrs_as() const {
    const T* typed = attrs.as<T>();
    HEADRACE_CHECK(typed != nullptr, "attributes of '{}' are not {}", as_op() ? as_op()->name : "call", T::type_key);
    return *typed;
  }
};
using Call = Ref<CallNode>;

struct LetNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Let";
  static constexpr bool is_final = true;
  static void fields(FieldList<LetNode>& f) {
    f.field<&LetNode::var>("var", {.def_once = true}).field<&LetNode::value>("value").field<&LetNode::body>("body");
  }
  Var var;  // also bound in `value`, so that a function can call itself
  Expr value, body;
};
using Let = Ref<LetNode>;

struct IfNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.If";
  static constexpr bool is_final = true;
  static void fields(FieldList<IfNode>& f) {
    f.field<&IfNode::cond>("cond")
        .field<&IfNode::true_branch>("true_branch")
        .field<&IfNode::false_branch>("false_branch");
  }
  Expr cond, true_branch, false_branch;
};
using If = Ref<IfNode>;

struct TupleNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Tuple";
  static constexpr bool is_final = true;
  static void fields(FieldList<TupleNode>& f) { f.field<&TupleNode::items>("fields"); }
  Array<Expr> items;
};
using Tuple = Ref<TupleNode>;

struct TupleGetItemNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.TupleGetItem";
  static constexpr bool is_final = true;
  static void fields(FieldList<TupleGetItemNode>& f) {
    f.field<&TupleGetItemNode::tuple>("tuple_value").field<&TupleGetItemNode::index>("index");
  }
  Expr tuple;
  int64_t index = 0;
};
using TupleGetItem = Ref<TupleGetItemNode>;

struct RefCreateNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.RefCreate";
  static constexpr bool is_final = true;
  static void fields(FieldList<RefCreateNode>& f) { f.field<&RefCreateNode::value>("value"); }
  Expr value;
};

struct RefReadNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.RefRead";
  static constexpr bool is_final = true;
  static void fields(FieldList<RefReadNode>& f) { f.field<&RefReadNode::ref>("ref"); }
  Expr ref;
};

struct RefWriteNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.RefWrite";
  static constexpr bool is_final = true;
  static void fields(FieldList<RefWriteNode>& f) {
    f.field<&RefWriteNode::ref>("ref").field<&RefWriteNode::value>("value");
  }
  Expr ref, value;
};

struct PatternNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "relay.Pattern";
  static constexpr int32_t child_slots = 4;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<PatternNode>& f) {
    f.field<&PatternNode::span>("span", {.ignore = true, .optional = true});
  }
  Span span;
};
using Pattern = Ref<PatternNode>;

struct PatternWildcardNode : PatternNode {
  using Parent = PatternNode;
  static constexpr std::string_view type_key = "relay.PatternWildcard";
  static constexpr bool is_final = true;
};

struct PatternVarNode : PatternNode {
  using Parent = PatternNode;
  static constexpr std::string_view type_key = "relay.PatternVar";
  static constexpr bool is_final = true;
  static void fields(FieldList<PatternVarNode>& f) { f.field<&PatternVarNode::var>("var", {.def_once = true}); }
  Var var;
};

struct PatternConstructorNode : PatternNode {
  using Parent = PatternNode;
  static constexpr std::string_view type_key = "relay.PatternConstructor";
  static constexpr bool is_final = true;
  static void fields(FieldList<PatternConstructorNode>& f) {
    f.field<&PatternConstructorNode::constructor>("constructor").field<&PatternConstructorNode::patterns>("patterns");
  }
  Constructor constructor;
  Array<Pattern> patterns;
};

struct PatternTupleNode : PatternNode {
  using Parent = PatternNode;
  static constexpr std::string_view type_key = "relay.PatternTuple";
  static constexpr bool is_final = true;
  static void fields(FieldList<PatternTupleNode>& f) { f.field<&PatternTupleNode::patterns>("patterns"); }
  Array<Pattern> patterns;
};

struct ClauseNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "relay.Clause";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<ClauseNode>& f) { f.field<&ClauseNode::lhs>("lhs").field<&ClauseNode::rhs>("rhs"); }
  Pattern lhs;
  Expr rhs;
};
using Clause = Ref<ClauseNode>;

struct MatchNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Match";
  static constexpr bool is_final = true;
  static void fields(FieldList<MatchNode>& f) {
    f.field<&MatchNode::data>("data").field<&MatchNode::clauses>("clauses").field<&MatchNode::complete>("complete");
  }
  Expr data;
  Array<Clause> clauses;
  bool complete = true;  // every value must be covered
};

Constant make_constant(NDArray data, Span span = {});
// A scalar constant.
Constant make_scalar(double value, DataType dtype = DataType::float_(32));
Var make_var(std::string name, Type type_annotation = {}, Span span = {});
Function make_function(Array<Var> params, Expr body, Type ret_type = {}, Array<TypeVar> type_params = {},
                       DictAttrs attrs = {}, Span span = {});
Call make_call(Expr op, Array<Expr> args, Attrs attrs = {}, Array<Type> type_args = {}, Span span = {});
// A call of the op named `op`.
Call make_call(std::string_view op, Array<Expr> args, Attrs attrs = {}, Span span = {});
Let make_let(Var var, Expr value, Expr body, Span span = {});
If make_if(Expr cond, Expr true_branch, Expr false_branch, Span span = {});
Tuple make_tuple(Array<Expr> items, Span span = {});
TupleGetItem make_tuple_get_item(Expr tuple, int64_t index, Span span = {});
Expr make_ref_create(Expr value, Span span = {});
Expr make_ref_read(Expr ref, Span span = {});
Expr make_ref_write(Expr ref, Expr value, Span span = {});
Expr make_match(Expr data, Array<Clause> clauses, bool complete = true, Span span = {});
Clause make_clause(Pattern lhs, Expr rhs);
Pattern make_pattern_wildcard();
Pattern make_pattern_var(Var var);
Pattern make_pattern_constructor(Constructor constructor, Array<Pattern> patterns);
Pattern make_pattern_tuple(Array<Pattern> patterns);

// Makes all node types of ir and relay known by key; called once by every reader of JSON or text.
void register_types();

}  // namespace headrace::relay
