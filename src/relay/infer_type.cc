#include "relay/infer_type.h"

#include "arith/canonical.h"
#include "ir/max_dim.h"
#include "relay/infer_state.h"

namespace headrace::relay {

namespace {

// With a stack of its own: what a user wrote may nest deeply, and is refused for that later.
bool is_complete(const Type& type) {
  std::vector<Type> pending{type};
  while (!pending.empty()) {
    const Type at = std::move(pending.back());
    pending.pop_back();
    if (!at || at.is<IncompleteTypeNode>()) return false;
    const auto push_all = [&](const Array<Type>& types) { pending.insert(pending.end(), types.begin(), types.end()); };
    if (const auto* tuple = at.as<TupleTypeNode>()) push_all(tuple->items);
    if (const auto* function = at.as<FuncTypeNode>()) {
      push_all(function->arg_types);
      pending.push_back(function->ret_type);
    }
    if (const auto* cell = at.as<RefTypeNode>()) pending.push_back(cell->value);
    if (const auto* call = at.as<TypeCallNode>()) push_all(call->args);
  }
  return true;
}

template <typename T>
bool try_copy(const Expr& expr, Expr& copy) {
  if (const T* node = expr.as<T>()) copy = copy_with(*node, [](T&) {});
  return copy.defined();
}

template <typename... T>
Expr copy_as_one_of(const Expr& expr) {
  Expr copy;
  static_cast<void>((try_copy<T>(expr, copy) || ...));
  HEADRACE_CHECK(copy.defined(), "a {} cannot be rebuilt", expr->key());
  return copy;
}

Expr copy_untyped(const Expr& expr) {
  return copy_as_one_of<ConstantNode, VarNode, GlobalVarNode, ConstructorNode, FunctionNode, CallNode, LetNode, IfNode,
                        TupleNode, TupleGetItemNode, RefCreateNode, RefReadNode, RefWriteNode, MatchNode>(expr);
}

// What is wrong with a dimension that a user wrote; empty when nothing is.
std::string dimension_fault(const PrimExpr& dim) {
  if (!dim) return "is missing";
  if (is_any(dim)) return "";
  if (dim->dtype != kIndexType) return fmt::format("has dtype {}, expected int64", dim->dtype);
  const auto value = as_int(dim);
  if (value && *value < 0) return fmt::format("is {}, which is negative", *value);
  if (value && *value > kMaxDim) return fmt::format("is {}, more than any machine holds", *value);
  return "";
}

std::string tensor_fault(const TensorTypeNode& tensor) {
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const std::string fault = dimension_fault(tensor.shape[i]);
    if (!fault.empty()) return fmt::format("dimension {} of a type {}", i, fault);
  }
  return tensor.dtype.is_void() || tensor.dtype.bits() == 0 ? "a tensor type has no dtype" : "";
}

// The types within a type of bounded depth; the first fault, or empty.
std::string type_fault(const Type& type) {
  if (!type) return "a part of a type is missing";
  if (const auto* tensor = type.as<TensorTypeNode>()) return tensor_fault(*tensor);
  Array<Type> parts;
  if (const auto* tuple = type.as<TupleTypeNode>()) parts = tuple->items;
  if (const auto* call = type.as<TypeCallNode>()) parts = call->args;
  if (const auto* cell = type.as<RefTypeNode>()) parts = {cell->value};
  if (const auto* function = type.as<FuncTypeNode>()) {
    parts = function->arg_types;
    parts.push_back(function->ret_type);
  }
  for (const Type& part : parts) {
    if (std::string fault = type_fault(part); !fault.empty()) return fault;
  }
  return "";
}

constexpr int64_t kMaxTypeSize = int64_t{1} << 20;

}  // namespace

Type annotated_type(const Function& function) {
  Array<Type> args;
  for (const Var& param : function->params) {
    if (!is_complete(param->type_annotation)) return {};
    args.push_back(param->type_annotation);
  }
  if (!is_complete(function->ret_type)) return {};
  return make_func_type(args, function->ret_type, function->type_params);
}

TypeData find_type_data(const IRModule& module, const GlobalTypeVar& var) {
  if (!module || !var) return {};
  const GlobalTypeVar present = module->find_global_type_var(var->name_hint);
  return present ? module->type_definitions.at(present) : TypeData();
}

Type constructor_type(const Constructor& constructor, const TypeData& data) {
  return make_func_type(constructor->inputs, make_type_call(data->header, Array<Type>(data->type_vars)),
                        data->type_vars);
}

void TypeErrors::add(const UserError& error) {
  if (messages_.size() == kMaxShown) {
    ++not_shown_;
  } else {
    messages_.push_back(error);
  }
}

void TypeErrors::add(const Span& span, std::string op, std::string message) {
  add(UserError(std::move(message), ErrorPlace{std::move(op), to_string(span)}));
}

void TypeErrors::raise() const {
  if (messages_.empty()) return;
  if (messages_.size() == 1) throw messages_.front();
  std::string text = fmt::format("{} type errors:", messages_.size() + not_shown_);
  for (const UserError& error : messages_) text += fmt::format("\n  {}", error.what());
  if (not_shown_ != 0) text += fmt::format("\n  ... and {} more", not_shown_);
  throw UserError(std::move(text), messages_.front().where());
}

Expr Inferencer::run(const Expr& expr) {
  need(expr);
  while (!stack_.empty()) {
    const Frame frame = std::move(stack_.back());
    stack_.pop_back();
    if (frame.stage > 0 || !is_known(frame.expr)) step(frame);
  }
  return typed(expr).expr;
}

void Inferencer::step(const Frame& frame) {
  const Expr& e = frame.expr;
  if (e.is<CallNode>()) return visit_call(e.cast<CallNode>(), frame.stage);
  if (e.is<ConstantNode>()) return visit_constant(e.cast<ConstantNode>());
  if (e.is<VarNode>()) return visit_var(e.cast<VarNode>());
  if (e.is<TupleNode>()) return visit_tuple(e.cast<TupleNode>(), frame.stage);
  if (e.is<TupleGetItemNode>()) return visit_get_item(e.cast<TupleGetItemNode>(), frame.stage);
  if (e.is<LetNode>()) return visit_let(e.cast<LetNode>(), frame.stage);
  if (e.is<IfNode>()) return visit_if(e.cast<IfNode>(), frame.stage);
  if (e.is<FunctionNode>()) return visit_function(e.cast<FunctionNode>(), frame.stage);
  if (e.is<GlobalVarNode>()) return visit_global(e.cast<GlobalVarNode>(), frame.stage);
  if (e.is<ConstructorNode>()) return visit_constructor(e.cast<ConstructorNode>());
  if (e.is<MatchNode>()) return visit_match(e.cast<MatchNode>(), frame.stage);
  if (e.is<RefCreateNode>() || e.is<RefReadNode>() || e.is<RefWriteNode>()) return visit_ref(e, frame.stage);
  if (const auto* op = e.as<OpNode>())
    return fail(e, e->span, op->name, "an op is no value; wrap it: fn (%x) { op(%x) }");
  fail(e, e->span, "", fmt::format("a {} is no relay expression", e->key()));
}

void Inferencer::need(const Expr& expr) {
  HEADRACE_CHECK(expr.defined(), "an expression has a null child");
  if (!is_known(expr)) later(expr, 0);
}

void Inferencer::need_all(const Array<Expr>& exprs) {
  for (size_t i = exprs.size(); i-- > 0;) need(exprs[i]);
}

bool Inferencer::all_typed(const Array<Expr>& exprs) const {
  return std::all_of(exprs.begin(), exprs.end(), [&](const Expr& e) { return typed(e).type.defined(); });
}

Expr Inferencer::typed_child(const Expr& expr, bool& changed) const {
  const Expr& result = typed(expr).expr;
  changed = changed || result != expr;
  return result;
}

Array<Expr> Inferencer::typed_all(const Array<Expr>& exprs, bool& changed) const {
  bool any = false;
  Array<Expr> result;
  for (const Expr& e : exprs) result.push_back(typed_child(e, any));
  changed = changed || any;
  return any ? result : exprs;
}

void Inferencer::finish(const Expr& original, Expr rebuilt, Type type) {
  if (type && !type.is<TensorTypeNode>() && type_size(type, kMaxTypeSize) == kMaxTypeSize)
    return fail(original, original->span, "",
                fmt::format("the type nests deeper than {} or has more than {} parts", kMaxTypeDepth, kMaxTypeSize));
  if (type) {
    if (rebuilt->has_checked_type() && !same_type(rebuilt->checked_type(), type)) rebuilt = copy_untyped(rebuilt);
    if (!rebuilt->has_checked_type()) rebuilt->set_checked_type(type);
    type = rebuilt->checked_type();
  }
  memo_[original.get()] = {std::move(rebuilt), std::move(type)};
}

void Inferencer::fail(const Expr& original, Span span, std::string op, std::string message) {
  errors_.add(span, std::move(op), std::move(message));
  memo_[original.get()] = {original, {}};
}

bool Inferencer::check_annotation(const Type& type, const Span& span) {
  std::string fault =
      type_size(type, kMaxTypeSize) == kMaxTypeSize ? "a type is too large or nests too deep" : type_fault(type);
  if (!fault.empty()) errors_.add(span, "", std::move(fault));
  return fault.empty();
}

void Inferencer::visit_constant(const Constant& node) { finish(node, node, node->tensor_type()); }

// Bound variables are known before they are met; this one is free.
void Inferencer::visit_var(const Var& node) {
  if (node->type_annotation && !check_annotation(node->type_annotation, node->span)) {
    memo_[node.get()] = {node, {}};
  } else if (node->type_annotation) {
    finish(node, node, node->type_annotation);
  } else {
    fail(node, node->span, "",
         fmt::format("variable '%{}' is not bound here and has no type annotation", node->name_hint));
  }
}

void Inferencer::bind_var(const Var& var, const Type& type) {
  const auto it = memo_.find(var.get());
  if (it == memo_.end()) return type ? finish(var, var, type) : static_cast<void>(memo_[var.get()] = {var, {}});
  if (type && it->second.type && !same_type(type, it->second.type)) {
    errors_.add(var->span, "",
                fmt::format("variable '%{}' is bound twice, as {} and as {}", var->name_hint,
                            to_string(it->second.type), to_string(type)));
  }
}

void Inferencer::visit_tuple(const Tuple& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need_all(node->items);
  }
  bool changed = false;
  const Array<Expr> items = typed_all(node->items, changed);
  Expr rebuilt = changed ? Expr(copy_with(*node, [&](TupleNode& copy) { copy.items = items; })) : Expr(node);
  if (!all_typed(node->items)) return finish(node, rebuilt, {});
  Array<Type> types;
  std::vector<PrimExpr> values;
  bool known = true;
  for (const Expr& item : node->items) {
    types.push_back(typed(item).type);
    const auto value = known && value_elements(typed(item).type) ? value_of(item) : std::nullopt;
    known = known && value.has_value();
    if (known) values.insert(values.end(), value->begin(), value->end());
  }
  finish(node, rebuilt, make_tuple_type(types));
  if (known && !values.empty()) values_[node.get()] = std::move(values);
}

void Inferencer::visit_get_item(const TupleGetItem& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need(node->tuple);
  }
  bool changed = false;
  const Expr tuple = typed_child(node->tuple, changed);
  Expr rebuilt = changed ? Expr(copy_with(*node, [&](TupleGetItemNode& copy) { copy.tuple = tuple; })) : Expr(node);
  const Type type = typed(node->tuple).type;
  if (!type) return finish(node, rebuilt, {});
  const auto* tuple_type = type.as<TupleTypeNode>();
  if (tuple_type == nullptr)
    return fail(node, node->span, "",
                fmt::format("item {} is taken of a value that is no tuple: {}", node->index, to_string(type)));
  const size_t size = tuple_type->items.size();
  if (node->index < 0 || static_cast<size_t>(node->index) >= size)
    return fail(node, node->span, "",
                fmt::format("item {} is taken of a tuple of {}: {}", node->index, size, to_string(type)));
  const size_t index = static_cast<size_t>(node->index);
  finish(node, rebuilt, tuple_type->items[index]);
  if (!values_.contains(node->tuple.get())) return;
  const std::vector<PrimExpr>& all = values_.at(node->tuple.get());
  size_t begin = 0;
  for (size_t i = 0; i < index; ++i) begin += value_elements(tuple_type->items[i]).value_or(0);
  const size_t end = begin + value_elements(tuple_type->items[index]).value_or(0);
  values_[node.get()] = std::vector<PrimExpr>(all.begin() + static_cast<std::ptrdiff_t>(begin),
                                              all.begin() + static_cast<std::ptrdiff_t>(end));
}

void Inferencer::visit_let(const Let& node, int stage) {
  if (stage == 0) {
    if (node->var->type_annotation) {
      bind_var(node->var,
               check_annotation(node->var->type_annotation, node->var->span) ? node->var->type_annotation : Type());
    } else if (const auto* function = node->value.as<FunctionNode>()) {
      // A function may call itself through the variable, if its signature is written.
      if (Type type = annotated_type(ref(function))) bind_var(node->var, type);
    }
    later(node, 1);
    return need(node->value);
  }
  if (stage == 1) {
    const Type type = typed(node->value).type;
    const bool bound = is_known(node->var) && node->var->type_annotation;
    if (!bound) {
      bind_var(node->var, type);
    } else if (type && typed(node->var).type && !join_types(typed(node->var).type, type, true)) {
      errors_.add(node->span ? node->span : node->value->span, "",
                  fmt::format("variable '%{}' is annotated as {} and bound to {}", node->var->name_hint,
                              to_string(typed(node->var).type), to_string(type)));
    }
    if (const auto value = value_of(node->value)) values_[node->var.get()] = *value;
    later(node, 2);
    return need(node->body);
  }
  bool changed = false;
  const Expr var = typed_child(node->var, changed), value = typed_child(node->value, changed),
             body = typed_child(node->body, changed);
  const auto change = [&](LetNode& copy) {
    copy.var = var.cast<VarNode>();
    copy.value = value;
    copy.body = body;
  };
  if (const auto known = value_of(node->body)) values_[node.get()] = *known;
  finish(node, changed ? Expr(copy_with(*node, change)) : Expr(node),
         typed(node->value).type ? typed(node->body).type : Type());
}

void Inferencer::visit_if(const If& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need_all({node->cond, node->true_branch, node->false_branch});
  }
  bool changed = false;
  const Expr cond = typed_child(node->cond, changed), on_true = typed_child(node->true_branch, changed),
             on_false = typed_child(node->false_branch, changed);
  const auto change = [&](IfNode& copy) {
    copy.cond = cond;
    copy.true_branch = on_true;
    copy.false_branch = on_false;
  };
  Expr rebuilt = changed ? Expr(copy_with(*node, change)) : Expr(node);
  if (!all_typed({node->cond, node->true_branch, node->false_branch})) return finish(node, rebuilt, {});
  if (!join_types(typed(node->cond).type, make_scalar_type(DataType::bool_()), true))
    return fail(node, node->span, "if",
                fmt::format("the condition is {}, expected a bool scalar", to_string(typed(node->cond).type)));
  const Type a = typed(node->true_branch).type, b = typed(node->false_branch).type;
  const Type type = join_types(a, b, false);
  if (!type)
    return fail(node, node->span, "if",
                fmt::format("the branches have different types: {} and {}", to_string(a), to_string(b)));
  finish(node, rebuilt, type);
}

void Inferencer::enter_symbols(const Function& function, int change) {
  for (const Var& param : function->params) {
    if (!param->type_annotation || type_size(param->type_annotation, kMaxTypeSize) == kMaxTypeSize) continue;
    visit_symbols(param->type_annotation, [&](const PrimVarNode* symbol) { symbols_[symbol] += change; });
  }
}

void Inferencer::visit_function(const Function& node, int stage) {
  if (stage == 1) return finish_function(node);
  for (const Var& param : node->params) {
    if (!param->type_annotation) {
      errors_.add(param->span ? param->span : node->span, "",
                  fmt::format("parameter '%{}' needs a type annotation", param->name_hint));
      bind_var(param, {});
    } else {
      bind_var(param, check_annotation(param->type_annotation, param->span) ? param->type_annotation : Type());
    }
  }
  enter_symbols(node, 1);
  later(node, 1);
  need(node->body);
}

void Inferencer::finish_function(const Function& node) {
  enter_symbols(node, -1);
  bool changed = false, all_known = true;
  Array<Var> params;
  Array<Type> types;
  for (const Var& param : node->params) {
    params.push_back(typed_child(param, changed).cast<VarNode>());
    all_known = all_known && typed(param).type;
    if (all_known) types.push_back(typed(param).type);
  }
  const Expr body = typed_child(node->body, changed);
  const auto change = [&](FunctionNode& copy) {
    copy.params = params;
    copy.body = body;
  };
  Expr rebuilt = changed ? Expr(copy_with(*node, change)) : Expr(node);
  Type ret = typed(node->body).type;
  if (node->ret_type && !check_annotation(node->ret_type, node->span)) return finish(node, rebuilt, {});
  if (ret && node->ret_type && !join_types(node->ret_type, ret, true))
    return fail(node, node->span, "",
                fmt::format("the function is annotated to give {} and its body gives {}", to_string(node->ret_type),
                            to_string(ret)));
  if (!ret || !all_known) return finish(node, rebuilt, {});
  if (node->ret_type) ret = is_complete(node->ret_type) ? node->ret_type : join_types(node->ret_type, ret, true);
  finish(node, rebuilt, make_func_type(types, ret, node->type_params));
}

// Stage 1 comes after the function's own inference.
void Inferencer::visit_global(const GlobalVar& node, int stage) {
  const std::string& name = node->name_hint;
  const GlobalVar var = module_ ? module_->find_global_var(name) : GlobalVar();
  if (!var) return fail(node, node->span, "", fmt::format("there is no function '@{}' in the module", name));
  const BaseFunc function = module_->functions.at(var);
  const Function relay_function = function.cast<FunctionNode>();
  if (!relay_function)
    return fail(node, node->span, "", fmt::format("'@{}' is no relay function and cannot be called from one", name));
  Type type = annotated_type(relay_function);
  if (!type && stage == 0 && !is_known(relay_function)) {
    if (in_progress_.contains(name))
      return fail(node, node->span, "",
                  fmt::format("function '@{}' calls itself; annotate its parameters and its return type", name));
    in_progress_.insert(name);
    outer_symbols_.push_back(std::exchange(symbols_, {}));
    later(node, 1);
    return need(relay_function);
  }
  if (stage == 1) {
    in_progress_.erase(name);
    symbols_ = std::move(outer_symbols_.back());
    outer_symbols_.pop_back();
    if (is_known(node)) return;
  }
  if (!type) type = typed(relay_function).type;
  const auto present = globals_.try_emplace(name, var).first;
  finish(node, present->second, type);
  present->second = typed(node).expr.cast<GlobalVarNode>();
}

GlobalVar Inferencer::typed_global(const GlobalVar& var) const {
  const auto it = globals_.find(var->name_hint);
  return it == globals_.end() ? var : it->second;
}

void Inferencer::visit_constructor(const Constructor& node) {
  const TypeData data = find_type_data(module_, node->belong_to);
  if (!data)
    return fail(
        node, node->span, node->name_hint,
        fmt::format("its type '{}' is not defined in the module", node->belong_to ? node->belong_to->name_hint : ""));
  finish(node, node, constructor_type(node, data));
}

void Inferencer::visit_ref(const Expr& node, int stage) {
  if (stage == 1) return finish_ref(node);
  later(node, 1);
  if (const auto* create = node.as<RefCreateNode>()) return need(create->value);
  if (const auto* read = node.as<RefReadNode>()) return need(read->ref);
  const auto* write = node.as<RefWriteNode>();
  need(write->value);
  need(write->ref);
}

void Inferencer::finish_ref(const Expr& node) {
  bool changed = false;
  if (const auto* create = node.as<RefCreateNode>()) {
    const Expr value = typed_child(create->value, changed);
    const Type type = typed(create->value).type;
    return finish(node, changed ? copy_with(*create, [&](RefCreateNode& copy) { copy.value = value; }) : node,
                  type ? make_ref_type(type) : Type());
  }
  const auto* read = node.as<RefReadNode>();
  const auto* write = node.as<RefWriteNode>();
  const Expr& cell = read != nullptr ? read->ref : write->ref;
  const Type cell_type = typed(cell).type;
  const auto* ref_type = cell_type.as<RefTypeNode>();
  if (cell_type && ref_type == nullptr)
    return fail(node, node->span, "", fmt::format("a reference is expected, got {}", to_string(cell_type)));
  const Expr new_cell = typed_child(cell, changed);
  if (read != nullptr)
    return finish(node, changed ? copy_with(*read, [&](RefReadNode& copy) { copy.ref = new_cell; }) : node,
                  ref_type != nullptr ? ref_type->value : Type());
  const Expr value = typed_child(write->value, changed);
  const Type type = typed(write->value).type;
  if (cell_type && type && !join_types(ref_type->value, type, true))
    return fail(node, node->span, "",
                fmt::format("a {} is written to a reference of {}", to_string(type), to_string(ref_type->value)));
  const auto change = [&](RefWriteNode& copy) {
    copy.ref = new_cell;
    copy.value = value;
  };
  finish(node, changed ? copy_with(*write, change) : node, cell_type && type ? make_tuple_type({}) : Type());
}

void Inferencer::visit_match(const Ref<MatchNode>& node, int stage) {
  if (stage == 0) {
    later(node, 1);
    return need(node->data);
  }
  if (stage == 2) return finish_match(node);
  for (const Clause& clause : node->clauses) bind_pattern(clause->lhs, typed(node->data).type, node->span);
  later(node, 2);
  for (size_t i = node->clauses.size(); i-- > 0;) need(node->clauses[i]->rhs);
}

void Inferencer::bind_pattern(const Pattern& root, const Type& root_type, const Span& span) {
  std::vector<std::pair<Pattern, Type>> pending{{root, root_type}};
  while (!pending.empty()) {
    const auto [pattern, type] = pending.back();
    pending.pop_back();
    const Span& at = pattern->span ? pattern->span : span;
    if (const auto* var = pattern.as<PatternVarNode>()) {
      bind_var(var->var, type);
    } else if (const auto* tuple = pattern.as<PatternTupleNode>()) {
      const auto* tuple_type = type.as<TupleTypeNode>();
      const bool fits = tuple_type != nullptr && tuple_type->items.size() == tuple->patterns.size();
      if (type && !fits)
        errors_.add(at, "match",
                    fmt::format("a pattern of {} items does not fit {}", tuple->patterns.size(), to_string(type)));
      for (size_t i = 0; i < tuple->patterns.size(); ++i)
        pending.emplace_back(tuple->patterns[i], fits ? tuple_type->items[i] : Type());
    } else if (const auto* constructor = pattern.as<PatternConstructorNode>()) {
      bind_constructor_pattern(*constructor, type, at, pending);
    }
  }
}

void Inferencer::bind_constructor_pattern(const PatternConstructorNode& pattern, const Type& type, const Span& span,
                                          std::vector<std::pair<Pattern, Type>>& pending) {
  const Constructor& constructor = pattern.constructor;
  const TypeData data = find_type_data(module_, constructor->belong_to);
  const auto* call = type.as<TypeCallNode>();
  const Type head = call != nullptr ? call->func : type;
  const size_t args = call != nullptr ? call->args.size() : 0;
  bool fits = data && type && same_type(head, constructor->belong_to) && args == data->type_vars.size();
  if (!data) {
    errors_.add(span, constructor->name_hint, "the constructor's type is not defined in the module");
  } else if (type && !fits) {
    errors_.add(span, "match",
                fmt::format("a value of {} is matched against {} of {}", to_string(type), constructor->name_hint,
                            to_string(Type(constructor->belong_to))));
  }
  if (pattern.patterns.size() != constructor->inputs.size()) {
    errors_.add(span, "match",
                fmt::format("{} has {} fields; the pattern names {}", constructor->name_hint,
                            constructor->inputs.size(), pattern.patterns.size()));
    fits = false;
  }
  TypeBindings bindings;
  if (fits) {
    for (size_t i = 0; i < args; ++i) bindings.types.emplace(data->type_vars[i].get(), call->args[i]);
  }
  const auto none = [](const Object*) { return false; };
  for (size_t i = 0; i < pattern.patterns.size(); ++i)
    pending.emplace_back(pattern.patterns[i], fits ? instantiate(constructor->inputs[i], none, bindings) : Type());
}

// Recursion is as deep as the type that the pattern matched, which is bounded.
Pattern Inferencer::typed_pattern(const Pattern& pattern) const {
  bool changed = false;
  const auto typed_all_patterns = [&](const Array<Pattern>& patterns) {
    Array<Pattern> result;
    for (const Pattern& item : patterns) {
      result.push_back(typed_pattern(item));
      changed = changed || result.back() != item;
    }
    return result;
  };
  if (const auto* var = pattern.as<PatternVarNode>()) {
    const Expr typed_var = typed_child(var->var, changed);
    return changed ? Pattern(copy_with(*var, [&](PatternVarNode& copy) { copy.var = typed_var.cast<VarNode>(); }))
                   : pattern;
  }
  if (const auto* tuple = pattern.as<PatternTupleNode>()) {
    const Array<Pattern> items = typed_all_patterns(tuple->patterns);
    return changed ? Pattern(copy_with(*tuple, [&](PatternTupleNode& copy) { copy.patterns = items; })) : pattern;
  }
  if (const auto* constructor = pattern.as<PatternConstructorNode>()) {
    const Array<Pattern> items = typed_all_patterns(constructor->patterns);
    return changed ? Pattern(copy_with(*constructor, [&](PatternConstructorNode& copy) { copy.patterns = items; }))
                   : pattern;
  }
  return pattern;
}

void Inferencer::finish_match(const Ref<MatchNode>& node) {
  bool changed = false;
  const Expr data = typed_child(node->data, changed);
  const bool data_known = typed(node->data).type.defined();
  Array<Clause> clauses;
  Type type;
  bool failed = !data_known || node->clauses.empty();
  if (node->clauses.empty()) errors_.add(node->span, "match", "a match needs a clause");
  for (const Clause& clause : node->clauses) {
    const Pattern lhs = data_known ? typed_pattern(clause->lhs) : clause->lhs;
    bool clause_changed = lhs != clause->lhs;
    const Expr rhs = typed_child(clause->rhs, clause_changed);
    clauses.push_back(clause_changed ? make_clause(lhs, rhs) : clause);
    changed = changed || clause_changed;
    const Type rhs_type = typed(clause->rhs).type;
    failed = failed || !rhs_type;
    if (failed) continue;
    const Type joined = type ? join_types(type, rhs_type, false) : rhs_type;
    if (!joined)
      return fail(node, node->span, "match",
                  fmt::format("the clauses have different types: {} and {}", to_string(type), to_string(rhs_type)));
    type = joined;
  }
  const auto change = [&](MatchNode& copy) {
    copy.data = data;
    copy.clauses = clauses;
  };
  finish(node, changed ? Expr(copy_with(*node, change)) : Expr(node), failed ? Type() : type);
}

ValueMap Inferencer::take_values(const Expr& root) {
  ValueMap result;
  static_cast<void>(root);
  for (auto& [original, value] : values_) {
    const auto it = memo_.find(original);
    if (it != memo_.end()) result.emplace(it->second.expr.get(), std::move(value));
  }
  return result;
}

IRModule infer_type(const IRModule& module) {
  Inferencer inferencer(module);
  std::vector<std::pair<GlobalVar, BaseFunc>> functions;
  for (const auto& [var, function] : module->functions) {
    const Expr typed = function.is<FunctionNode>() ? inferencer.run(function) : Expr(function);
    functions.emplace_back(var, typed.cast<BaseFuncNode>());
  }
  // The variables are typed as the functions are; a variable nobody refers to also gets its type.
  for (auto& [var, function] : functions) {
    if (function.is<FunctionNode>()) inferencer.run(var);
  }
  inferencer.errors().raise();
  bool changed = false;
  Map<GlobalVar, BaseFunc> typed;
  for (const auto& [var, function] : functions) {
    const GlobalVar new_var = inferencer.typed_global(var);
    changed = changed || new_var != var || module->functions.at(var) != function;
    typed.set(new_var, function);
  }
  if (!changed) return module;
  return copy_with(*module, [&](IRModuleNode& copy) {
    copy.functions = typed;
    copy.globals_by_name.clear();
    for (const auto& [var, function] : typed) copy.globals_by_name[var->name_hint] = var;
  });
}

TypedExpr infer_type_and_values(const Expr& expr, const IRModule& module) {
  Inferencer inferencer(module);
  Expr typed = inferencer.run(expr);
  inferencer.errors().raise();
  ValueMap values = inferencer.take_values(typed);
  return {std::move(typed), std::move(values)};
}

Expr infer_type(const Expr& expr, const IRModule& module) { return infer_type_and_values(expr, module).expr; }

}  // namespace headrace::relay
