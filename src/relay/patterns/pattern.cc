#include "relay/patterns/pattern.h"

namespace headrace::relay {

void ExprPatternNode::fields(FieldList<ExprPatternNode>& f) { f.field<&ExprPatternNode::expr>("expr"); }

void VarPatternNode::fields(FieldList<VarPatternNode>& f) {
  f.field<&VarPatternNode::name>("name", {.default_value = Value(""), .has_default = true});
}

void CallPatternNode::fields(FieldList<CallPatternNode>& f) {
  f.field<&CallPatternNode::op>("op").field<&CallPatternNode::args>("args", {.optional = true});
}

void FunctionPatternNode::fields(FieldList<FunctionPatternNode>& f) {
  f.field<&FunctionPatternNode::params>("params", {.optional = true}).field<&FunctionPatternNode::body>("body");
}

void LetPatternNode::fields(FieldList<LetPatternNode>& f) {
  f.field<&LetPatternNode::var>("var").field<&LetPatternNode::value>("value").field<&LetPatternNode::body>("body");
}

void IfPatternNode::fields(FieldList<IfPatternNode>& f) {
  f.field<&IfPatternNode::cond>("cond")
      .field<&IfPatternNode::true_branch>("true_branch")
      .field<&IfPatternNode::false_branch>("false_branch");
}

void TuplePatternNode::fields(FieldList<TuplePatternNode>& f) {
  f.field<&TuplePatternNode::items>("fields", {.optional = true});
}

void TupleGetItemPatternNode::fields(FieldList<TupleGetItemPatternNode>& f) {
  f.field<&TupleGetItemPatternNode::tuple>("tuple").field<&TupleGetItemPatternNode::index>(
      "index", {.default_value = Value(-1), .has_default = true, .doc = "-1: any"});
}

void AltPatternNode::fields(FieldList<AltPatternNode>& f) {
  f.field<&AltPatternNode::left>("left").field<&AltPatternNode::right>("right");
}

void WildcardPatternNode::fields(FieldList<WildcardPatternNode>& f) {
  f.field<&WildcardPatternNode::redirect>("redirect", {.optional = true});
}

void TypePatternNode::fields(FieldList<TypePatternNode>& f) {
  f.field<&TypePatternNode::pattern>("pattern").field<&TypePatternNode::type>("type");
}

void ShapePatternNode::fields(FieldList<ShapePatternNode>& f) {
  f.field<&ShapePatternNode::pattern>("pattern").field<&ShapePatternNode::shape>("shape");
}

void DataTypePatternNode::fields(FieldList<DataTypePatternNode>& f) {
  f.field<&DataTypePatternNode::pattern>("pattern").field<&DataTypePatternNode::dtype>("dtype");
}

void AttrPatternNode::fields(FieldList<AttrPatternNode>& f) {
  f.field<&AttrPatternNode::pattern>("pattern").field<&AttrPatternNode::attrs>("attrs");
}

void DominatorPatternNode::fields(FieldList<DominatorPatternNode>& f) {
  f.field<&DominatorPatternNode::parent>("parent")
      .field<&DominatorPatternNode::path>("path")
      .field<&DominatorPatternNode::child>("child");
}

NamedValues RedirectNode::save_content(const RedirectNode&) {
  throw_user_error("a wildcard that is redirected has no JSON; write the pattern as text");
}

Ref<RedirectNode> RedirectNode::load_content(const NamedValues&) {
  throw_user_error("a wildcard that is redirected has no JSON");
}

namespace patterns {

namespace {

// Throws unless every part of a pattern is one.
void check_part(const DFPattern& part, std::string_view what) {
  if (!part) throw_user_error("a pattern has no {}", what);
}

void check_parts(const std::optional<Array<DFPattern>>& parts, std::string_view what) {
  if (!parts) return;
  for (const DFPattern& part : *parts) check_part(part, what);
}

}  // namespace

DFPattern wildcard() { return make_object<WildcardPatternNode>(); }

DFPattern is_constant() { return make_object<ConstantPatternNode>(); }

DFPattern is_var(std::string name) {
  const auto node = make_object<VarPatternNode>();
  node->name = std::move(name);
  return node;
}

DFPattern is_expr(Expr expr) {
  if (!expr) throw_user_error("a pattern has no expression to equal");
  const auto node = make_object<ExprPatternNode>();
  node->expr = std::move(expr);
  return node;
}

DFPattern is_op(std::string_view name) { return is_expr(get_op(name)); }

DFPattern call(DFPattern op, std::optional<Array<DFPattern>> args) {
  check_part(op, "callee");
  check_parts(args, "argument");
  const auto node = make_object<CallPatternNode>();
  node->op = std::move(op);
  node->args = std::move(args);
  return node;
}

DFPattern function(std::optional<Array<DFPattern>> params, DFPattern body) {
  check_parts(params, "parameter");
  check_part(body, "body");
  const auto node = make_object<FunctionPatternNode>();
  node->params = std::move(params);
  node->body = std::move(body);
  return node;
}

DFPattern is_let(DFPattern var, DFPattern value, DFPattern body) {
  for (const DFPattern& part : {var, value, body}) check_part(part, "part of a let");
  const auto node = make_object<LetPatternNode>();
  node->var = std::move(var);
  node->value = std::move(value);
  node->body = std::move(body);
  return node;
}

DFPattern is_if(DFPattern cond, DFPattern true_branch, DFPattern false_branch) {
  for (const DFPattern& part : {cond, true_branch, false_branch}) check_part(part, "part of an if");
  const auto node = make_object<IfPatternNode>();
  node->cond = std::move(cond);
  node->true_branch = std::move(true_branch);
  node->false_branch = std::move(false_branch);
  return node;
}

DFPattern is_tuple(std::optional<Array<DFPattern>> items) {
  check_parts(items, "field of a tuple");
  const auto node = make_object<TuplePatternNode>();
  node->items = std::move(items);
  return node;
}

DFPattern is_tuple_get_item(DFPattern tuple, int64_t index) {
  check_part(tuple, "tuple");
  const auto node = make_object<TupleGetItemPatternNode>();
  node->tuple = std::move(tuple);
  node->index = index;
  return node;
}

DFPattern alt(DFPattern left, DFPattern right) {
  for (const DFPattern& part : {left, right}) check_part(part, "alternative");
  const auto node = make_object<AltPatternNode>();
  node->left = std::move(left);
  node->right = std::move(right);
  return node;
}

DFPattern has_type(DFPattern pattern, Type type) {
  check_part(pattern, "pattern with that type");
  const auto node = make_object<TypePatternNode>();
  node->pattern = std::move(pattern);
  node->type = std::move(type);
  return node;
}

DFPattern has_shape(DFPattern pattern, Array<PrimExpr> shape) {
  check_part(pattern, "pattern with that shape");
  const auto node = make_object<ShapePatternNode>();
  node->pattern = std::move(pattern);
  node->shape = std::move(shape);
  return node;
}

DFPattern has_dtype(DFPattern pattern, DataType dtype) {
  check_part(pattern, "pattern with that dtype");
  const auto node = make_object<DataTypePatternNode>();
  node->pattern = std::move(pattern);
  node->dtype = dtype;
  return node;
}

DFPattern has_attr(DFPattern pattern, Map<std::string, Value> attrs) {
  check_part(pattern, "pattern with those attributes");
  const auto node = make_object<AttrPatternNode>();
  node->pattern = std::move(pattern);
  node->attrs = std::move(attrs);
  return node;
}

DFPattern dominates(DFPattern parent, DFPattern path, DFPattern child) {
  for (const DFPattern& part : {parent, path, child}) check_part(part, "part of a dominator");
  const auto node = make_object<DominatorPatternNode>();
  node->parent = std::move(parent);
  node->path = std::move(path);
  node->child = std::move(child);
  return node;
}

void redirect(const WildcardPatternNode& wildcard, const DFPattern& target) {
  if (!target) {
    if (wildcard.redirect) wildcard.redirect->pattern = {};
    wildcard.redirect = {};
    return;
  }
  if (target.object() == &wildcard) throw_user_error("a wildcard cannot be redirected to itself");
  const auto link = make_object<RedirectNode>();
  link->pattern = target;
  wildcard.redirect = link;
}

}  // namespace patterns

namespace {

std::vector<DFPattern> with_first(const DFPattern& first, const std::optional<Array<DFPattern>>& others) {
  std::vector<DFPattern> all{first};
  if (others) all.insert(all.end(), others->begin(), others->end());
  return all;
}

std::vector<DFPattern> function_parts(const FunctionPatternNode& function) {
  std::vector<DFPattern> parts = function.params ? function.params->to_vector() : std::vector<DFPattern>();
  parts.push_back(function.body);
  return parts;
}

}  // namespace

std::vector<DFPattern> children_of(const DFPattern& pattern) {
  if (const auto* call = pattern.as<CallPatternNode>()) return with_first(call->op, call->args);
  if (const auto* function = pattern.as<FunctionPatternNode>()) return function_parts(*function);
  if (const auto* let = pattern.as<LetPatternNode>()) return {let->var, let->value, let->body};
  if (const auto* branch = pattern.as<IfPatternNode>())
    return {branch->cond, branch->true_branch, branch->false_branch};
  if (const auto* tuple = pattern.as<TuplePatternNode>())
    return tuple->items ? tuple->items->to_vector() : std::vector<DFPattern>();
  if (const auto* item = pattern.as<TupleGetItemPatternNode>()) return {item->tuple};
  if (const auto* either = pattern.as<AltPatternNode>()) return {either->left, either->right};
  if (const auto* typed = pattern.as<TypePatternNode>()) return {typed->pattern};
  if (const auto* shaped = pattern.as<ShapePatternNode>()) return {shaped->pattern};
  if (const auto* typed = pattern.as<DataTypePatternNode>()) return {typed->pattern};
  if (const auto* marked = pattern.as<AttrPatternNode>()) return {marked->pattern};
  if (const auto* dominator = pattern.as<DominatorPatternNode>())
    return {dominator->parent, dominator->path, dominator->child};
  const auto* any = pattern.as<WildcardPatternNode>();
  if (any != nullptr && any->redirect && any->redirect->pattern) return {any->redirect->pattern};
  return {};
}

template <typename... T>
static void touch_pattern_types() {
  (static_cast<void>(type_of<T>()), ...);
}

void register_pattern_types() {
  touch_pattern_types<ExprPatternNode, VarPatternNode, ConstantPatternNode, CallPatternNode, FunctionPatternNode,
                      LetPatternNode, IfPatternNode, TuplePatternNode, TupleGetItemPatternNode, AltPatternNode,
                      RedirectNode, WildcardPatternNode, TypePatternNode, ShapePatternNode, DataTypePatternNode,
                      AttrPatternNode, DominatorPatternNode>();
}

}  // namespace headrace::relay
