// The nodes of the dataflow pattern language, which describes pieces of a program: "a convolution, a bias, perhaps a
// relu". Programs match patterns (matcher.h), are rewritten (rewrite.h) and split (partition.h) by them. Names of types
// and fields are Relay's.
//
// A node that occurs twice in one pattern stands for one expression: with `w`, add(w, w) matches x + x and not x + y;
// two wildcards may stand for two expressions. Patterns are immutable except for the slot that redirect_to sets.
#pragma once

#include <optional>

#include "relay/expr.h"

namespace headrace::relay {

struct DFPatternNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.DFPattern";
  static constexpr int32_t child_slots = 24;
  static constexpr StructuralKind structural_kind = StructuralKind::dag;
};
using DFPattern = Ref<DFPatternNode>;

// Matches an expression that is structurally equal to `expr`; an op, mostly.
struct ExprPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.ExprPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<ExprPatternNode>& f);
  Expr expr;
};

// Matches a variable of that name, or any variable for an empty name.
struct VarPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.VarPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<VarPatternNode>& f);
  std::string name;
};

struct ConstantPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.ConstantPattern";
  static constexpr bool is_final = true;
};

// Matches a call; without `args` a call of any number of arguments.
struct CallPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.CallPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<CallPatternNode>& f);
  DFPattern op;
  std::optional<Array<DFPattern>> args;
};

// Matches a function literal; without `params` one of any number of parameters.
struct FunctionPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.FunctionPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<FunctionPatternNode>& f);
  std::optional<Array<DFPattern>> params;
  DFPattern body;
};

struct LetPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.LetPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<LetPatternNode>& f);
  DFPattern var, value, body;
};

struct IfPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.IfPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<IfPatternNode>& f);
  DFPattern cond, true_branch, false_branch;
};

// Matches a tuple; without `items` one of any number of fields.
struct TuplePatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.TuplePattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<TuplePatternNode>& f);
  std::optional<Array<DFPattern>> items;
};

struct TupleGetItemPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.TupleGetItemPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<TupleGetItemPatternNode>& f);
  DFPattern tuple;
  int64_t index = -1;  // -1: any
};

// Matches what `left` matches; else what `right` matches.
struct AltPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.AltPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<AltPatternNode>& f);
  DFPattern left, right;
};

// The target of a redirected wildcard. The link back into the pattern is not a field, because equality, hash and JSON
// would follow it for ever: a redirected wildcard equals only itself, and JSON refuses it.
struct RedirectNode : Object {
  using Parent = Object;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.Redirect";
  static constexpr bool is_final = true;
  static NamedValues save_content(const RedirectNode& node);        // UserError
  static Ref<RedirectNode> load_content(const NamedValues& saved);  // UserError
  DFPattern pattern;
};

// Matches anything; redirected, what the target matches, which may contain the wildcard itself.
struct WildcardPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.WildcardPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<WildcardPatternNode>& f);
  mutable Ref<RedirectNode> redirect;  // null: matches anything
};
using WildcardPattern = Ref<WildcardPatternNode>;

// Matches what `pattern` matches and has the type.
struct TypePatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.TypePattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<TypePatternNode>& f);
  DFPattern pattern;
  Type type;
};

struct ShapePatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.ShapePattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<ShapePatternNode>& f);
  DFPattern pattern;
  Array<PrimExpr> shape;
};

struct DataTypePatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.DataTypePattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<DataTypePatternNode>& f);
  DFPattern pattern;
  DataType dtype;
};

// Matches what `pattern` matches and is an op, a call or a function with those attributes, and perhaps others.
struct AttrPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.AttrPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<AttrPatternNode>& f);
  DFPattern pattern;
  Map<std::string, Value> attrs;
};

// Matches what `child` matches when every path up from there goes through expressions that match `path` and ends at one
// expression that matches `parent` and is used nowhere else.
struct DominatorPatternNode : DFPatternNode {
  using Parent = DFPatternNode;
  static constexpr std::string_view type_key = "relay.dataflow_pattern.DominatorPattern";
  static constexpr bool is_final = true;
  static void fields(FieldList<DominatorPatternNode>& f);
  DFPattern parent, path, child;
};

namespace patterns {

DFPattern wildcard();
DFPattern is_constant();
DFPattern is_var(std::string name = "");
DFPattern is_expr(Expr expr);
// UserError that suggests similar names when there is no such op.
DFPattern is_op(std::string_view name);
DFPattern call(DFPattern op, std::optional<Array<DFPattern>> args);
DFPattern function(std::optional<Array<DFPattern>> params, DFPattern body);
DFPattern is_let(DFPattern var, DFPattern value, DFPattern body);
DFPattern is_if(DFPattern cond, DFPattern true_branch, DFPattern false_branch);
DFPattern is_tuple(std::optional<Array<DFPattern>> items);
DFPattern is_tuple_get_item(DFPattern tuple, int64_t index = -1);
DFPattern alt(DFPattern left, DFPattern right);
DFPattern has_type(DFPattern pattern, Type type);
DFPattern has_shape(DFPattern pattern, Array<PrimExpr> shape);
DFPattern has_dtype(DFPattern pattern, DataType dtype);
DFPattern has_attr(DFPattern pattern, Map<std::string, Value> attrs);
DFPattern dominates(DFPattern parent, DFPattern path, DFPattern child);

// Makes a wildcard stand for `target`, which may contain the wildcard; null undoes it. A pattern that contains itself
// holds itself in memory until the redirection is undone.
void redirect(const WildcardPatternNode& wildcard, const DFPattern& target);

}  // namespace patterns

// Returns the patterns that a node consists of, in the order that numbers inputs: a call's op, then its arguments; a
// function's parameters, then its body; a dominator's parent, path, child; a redirected wildcard's target.
std::vector<DFPattern> children_of(const DFPattern& pattern);

// Undoes all redirections within a pattern, so that a pattern that contains itself is freed with its last user.
void release_recursions(const DFPattern& pattern);

// Makes all node types of patterns known by key.
void register_pattern_types();

}  // namespace headrace::relay
