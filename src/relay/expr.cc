#include "relay/expr.h"

namespace headrace::relay {

void ConstantNode::fields(FieldList<ConstantNode>& f) { f.field<&ConstantNode::data>("data"); }

// A type that is not written is one to be inferred, as `_` is.
static Value unknown_type() {
  static const Value type(make_incomplete_type());
  return type;
}

void VarNode::fields(FieldList<VarNode>& f) {
  f.field<&VarNode::name_hint>("name_hint", {.ignore = true})
      .field<&VarNode::type_annotation>("type_annotation", {.optional = true, .when_none = unknown_type});
}

void FunctionNode::fields(FieldList<FunctionNode>& f) {
  f.field<&FunctionNode::type_params>("type_params", {.def_once = true})
      .field<&FunctionNode::params>("params", {.def_recursive = true})
      .field<&FunctionNode::ret_type>("ret_type", {.optional = true, .when_none = unknown_type})
      .field<&FunctionNode::body>("body");
}

void CallNode::fields(FieldList<CallNode>& f) {
  f.field<&CallNode::op>("op")
      .field<&CallNode::args>("args")
      .field<&CallNode::attrs>("attrs", {.optional = true})
      .field<&CallNode::type_args>("type_args", {.ignore = true});
}

void LetNode::fields(FieldList<LetNode>& f) {
  f.field<&LetNode::var>("var", {.def_once = true}).field<&LetNode::value>("value").field<&LetNode::body>("body");
}

void IfNode::fields(FieldList<IfNode>& f) {
  f.field<&IfNode::cond>("cond")
      .field<&IfNode::true_branch>("true_branch")
      .field<&IfNode::false_branch>("false_branch");
}

void TupleNode::fields(FieldList<TupleNode>& f) { f.field<&TupleNode::items>("fields"); }

void TupleGetItemNode::fields(FieldList<TupleGetItemNode>& f) {
  f.field<&TupleGetItemNode::tuple>("tuple_value").field<&TupleGetItemNode::index>("index");
}

void RefCreateNode::fields(FieldList<RefCreateNode>& f) { f.field<&RefCreateNode::value>("value"); }

void RefReadNode::fields(FieldList<RefReadNode>& f) { f.field<&RefReadNode::ref>("ref"); }

void RefWriteNode::fields(FieldList<RefWriteNode>& f) {
  f.field<&RefWriteNode::ref>("ref").field<&RefWriteNode::value>("value");
}

void PatternNode::fields(FieldList<PatternNode>& f) {
  f.field<&PatternNode::span>("span", {.ignore = true, .optional = true});
}

void PatternVarNode::fields(FieldList<PatternVarNode>& f) { f.field<&PatternVarNode::var>("var", {.def_once = true}); }

void PatternConstructorNode::fields(FieldList<PatternConstructorNode>& f) {
  f.field<&PatternConstructorNode::constructor>("constructor").field<&PatternConstructorNode::patterns>("patterns");
}

void PatternTupleNode::fields(FieldList<PatternTupleNode>& f) { f.field<&PatternTupleNode::patterns>("patterns"); }

void ClauseNode::fields(FieldList<ClauseNode>& f) { f.field<&ClauseNode::lhs>("lhs").field<&ClauseNode::rhs>("rhs"); }

void MatchNode::fields(FieldList<MatchNode>& f) {
  f.field<&MatchNode::data>("data").field<&MatchNode::clauses>("clauses").field<&MatchNode::complete>("complete");
}

TensorType ConstantNode::tensor_type() const { return make_tensor_type(data.shape(), data.dtype()); }

// Makes a node of type T with its span; the caller fills in the fields.
template <typename T>
static Ref<T> make_node_at(Span span) {
  auto node = make_object<T>();
  node->span = std::move(span);
  return node;
}

Constant make_constant(NDArray data, Span span) {
  auto node = make_node_at<ConstantNode>(std::move(span));
  node->data = std::move(data);
  return node;
}

Constant make_scalar(double value, DataType dtype) {
  NDArray data = NDArray::empty({}, dtype);
  set_element(data.tensor(), 0, value);
  return make_constant(data);
}

Var make_var(std::string name, Type type_annotation, Span span) {
  auto node = make_node_at<VarNode>(std::move(span));
  node->name_hint = std::move(name);
  node->type_annotation = std::move(type_annotation);
  return node;
}

Function make_function(Array<Var> params, Expr body, Type ret_type, Array<TypeVar> type_params, DictAttrs attrs,
                       Span span) {
  auto node = make_node_at<FunctionNode>(std::move(span));
  node->params = std::move(params);
  node->body = std::move(body);
  node->ret_type = std::move(ret_type);
  node->type_params = std::move(type_params);
  node->attrs = plain_attrs(attrs);
  return node;
}

Call make_call(Expr op, Array<Expr> args, Attrs attrs, Array<Type> type_args, Span span) {
  auto node = make_node_at<CallNode>(std::move(span));
  node->op = std::move(op);
  node->args = std::move(args);
  node->attrs = std::move(attrs);
  node->type_args = std::move(type_args);
  return node;
}

Call make_call(std::string_view op, Array<Expr> args, Attrs attrs, Span span) {
  return make_call(Expr(get_op(op)), std::move(args), std::move(attrs), {}, std::move(span));
}

Let make_let(Var var, Expr value, Expr body, Span span) {
  auto node = make_node_at<LetNode>(std::move(span));
  node->var = std::move(var);
  node->value = std::move(value);
  node->body = std::move(body);
  return node;
}

If make_if(Expr cond, Expr true_branch, Expr false_branch, Span span) {
  auto node = make_node_at<IfNode>(std::move(span));
  node->cond = std::move(cond);
  node->true_branch = std::move(true_branch);
  node->false_branch = std::move(false_branch);
  return node;
}

Tuple make_tuple(Array<Expr> items, Span span) {
  auto node = make_node_at<TupleNode>(std::move(span));
  node->items = std::move(items);
  return node;
}

TupleGetItem make_tuple_get_item(Expr tuple, int64_t index, Span span) {
  auto node = make_node_at<TupleGetItemNode>(std::move(span));
  node->tuple = std::move(tuple);
  node->index = index;
  return node;
}

Expr make_ref_create(Expr value, Span span) {
  auto node = make_node_at<RefCreateNode>(std::move(span));
  node->value = std::move(value);
  return node;
}

Expr make_ref_read(Expr ref, Span span) {
  auto node = make_node_at<RefReadNode>(std::move(span));
  node->ref = std::move(ref);
  return node;
}

Expr make_ref_write(Expr ref, Expr value, Span span) {
  auto node = make_node_at<RefWriteNode>(std::move(span));
  node->ref = std::move(ref);
  node->value = std::move(value);
  return node;
}

Expr make_match(Expr data, Array<Clause> clauses, bool complete, Span span) {
  auto node = make_node_at<MatchNode>(std::move(span));
  node->data = std::move(data);
  node->clauses = std::move(clauses);
  node->complete = complete;
  return node;
}

Clause make_clause(Pattern lhs, Expr rhs) {
  auto node = make_object<ClauseNode>();
  node->lhs = std::move(lhs);
  node->rhs = std::move(rhs);
  return node;
}

Pattern make_pattern_wildcard() { return make_object<PatternWildcardNode>(); }

Pattern make_pattern_var(Var var) {
  auto node = make_object<PatternVarNode>();
  node->var = std::move(var);
  return node;
}

Pattern make_pattern_constructor(Constructor constructor, Array<Pattern> patterns) {
  auto node = make_object<PatternConstructorNode>();
  node->constructor = std::move(constructor);
  node->patterns = std::move(patterns);
  return node;
}

Pattern make_pattern_tuple(Array<Pattern> patterns) {
  auto node = make_object<PatternTupleNode>();
  node->patterns = std::move(patterns);
  return node;
}

template <typename... T>
static void touch_types() {
  (static_cast<void>(type_of<T>()), ...);
}

void register_types() {
  touch_types<StrObj, BytesObj, ShapeObj, ArrayObj, MapObj, ADTObj, NDArrayObj>();
  touch_types<SpanNode, IntImmNode, FloatImmNode, StringImmNode, PrimVarNode, AnyNode, BinaryNode, NotNode, SelectNode,
              CastNode, RampNode, BroadcastNode, PrimLetNode, IntrinsicCallNode, BufferNode, BufferLoadNode>();
  touch_types<PrimTypeNode, TensorTypeNode, TupleTypeNode, TypeVarNode, GlobalTypeVarNode, FuncTypeNode, RefTypeNode,
              TypeCallNode, IncompleteTypeNode, TypeRelationNode, TypeDataNode>();
  touch_types<GlobalVarNode, OpNode, ConstructorNode, SourceNode, IRModuleNode, ConstantNode, VarNode, FunctionNode,
              CallNode, LetNode, IfNode, TupleNode, TupleGetItemNode, RefCreateNode, RefReadNode, RefWriteNode,
              MatchNode, ClauseNode, PatternWildcardNode, PatternVarNode, PatternConstructorNode, PatternTupleNode>();
}

}  // namespace headrace::relay
