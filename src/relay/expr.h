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
  static void fields(FieldList<ConstantNode>& f);
  NDArray data;
  TensorType tensor_type() const;
};
using Constant = Ref<ConstantNode>;

struct VarNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Var";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::var;
  static void fields(FieldList<VarNode>& f);
  std::string name_hint;
  Type type_annotation;  // null: to be inferred
};
using Var = Ref<VarNode>;

struct FunctionNode : BaseFuncNode {
  using Parent = BaseFuncNode;
  static constexpr std::string_view type_key = "relay.Function";
  static constexpr bool is_final = true;
  static void fields(FieldList<FunctionNode>& f);
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
  static void fields(FieldList<CallNode>& f);
  Expr op;  // an Op, a GlobalVar, a Constructor, or anything that is a function
  Array<Expr> args;
  Attrs attrs;
  Array<Type> type_args;
  // Returns the op when it is one, else null.
  const OpNode* as_op() const { return op.as<OpNode>(); }
  // Returns the attributes as a T; InternalError when they are of another kind.
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
  static void fields(FieldList<LetNode>& f);
  Var var;  // also bound in `value`, so that a function can call itself
  Expr value, body;
};
using Let = Ref<LetNode>;

struct IfNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.If";
  static constexpr bool is_final = true;
  static void fields(FieldList<IfNode>& f);
  Expr cond, true_branch, false_branch;
};
using If = Ref<IfNode>;

struct TupleNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Tuple";
  static constexpr bool is_final = true;
  static void fields(FieldList<TupleNode>& f);
  Array<Expr> items;
};
using Tuple = Ref<TupleNode>;

struct TupleGetItemNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.TupleGetItem";
  static constexpr bool is_final = true;
  static void fields(FieldList<TupleGetItemNode>& f);
  Expr tuple;
  int64_t index = 0;
};
using TupleGetItem = Ref<TupleGetItemNode>;

struct RefCreateNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.RefCreate";
  static constexpr bool is_final = true;
  static void fields(FieldList<RefCreateNode>& f);
  Expr value;
};

struct RefReadNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.RefRead";
  static constexpr bool is_final = true;
  static void fields(FieldList<RefReadNode>& f);
  Expr ref;
};

struct RefWriteNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.RefWrite";
  static constexpr bool is_final = true;
  static void fields(FieldList<RefWriteNode>& f);
  Expr ref, value;
};

struct PatternNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "relay.Pattern";
  static constexpr int32_t child_slots = 4;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<PatternNode>& f);
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
  static void fields(FieldList<PatternVarNode>& f);
  Var var;
};

struct PatternConstructorNode : PatternNode {
  using Parent = PatternNode;
  static constexpr std::string_view type_key = "relay.PatternConstructor";
  static constexpr bool is_final = true;
  static void fields(FieldList<PatternConstructorNode>& f);
  Constructor constructor;
  Array<Pattern> patterns;
};

struct PatternTupleNode : PatternNode {
  using Parent = PatternNode;
  static constexpr std::string_view type_key = "relay.PatternTuple";
  static constexpr bool is_final = true;
  static void fields(FieldList<PatternTupleNode>& f);
  Array<Pattern> patterns;
};

struct ClauseNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "relay.Clause";
  static constexpr bool is_final = true;
  static constexpr StructuralKind structural_kind = StructuralKind::tree;
  static void fields(FieldList<ClauseNode>& f);
  Pattern lhs;
  Expr rhs;
};
using Clause = Ref<ClauseNode>;

struct MatchNode : ExprNode {
  using Parent = ExprNode;
  static constexpr std::string_view type_key = "relay.Match";
  static constexpr bool is_final = true;
  static void fields(FieldList<MatchNode>& f);
  Expr data;
  Array<Clause> clauses;
  bool complete = true;  // every value must be covered
};

Constant make_constant(NDArray data, Span span = {});
// Makes a scalar constant.
Constant make_scalar(double value, DataType dtype = DataType::float_(32));
Var make_var(std::string name, Type type_annotation = {}, Span span = {});
Function make_function(Array<Var> params, Expr body, Type ret_type = {}, Array<TypeVar> type_params = {},
                       DictAttrs attrs = {}, Span span = {});
Call make_call(Expr op, Array<Expr> args, Attrs attrs = {}, Array<Type> type_args = {}, Span span = {});
// Makes a call of the op named `op`.
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
