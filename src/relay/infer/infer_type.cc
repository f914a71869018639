#include "relay/infer/infer_type.h"

#include <unordered_set>

#include "arith/canonical.h"
#include "ir/map_operands.h"
#include "ir/max_dim.h"
#include "ir/type_parts.h"
#include "relay/infer/check_kind.h"
#include "relay/infer/inferencer.h"
#include "relay/infer/shown_places.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

bool is_complete(const Type& type) {
  return !any_type(type, [](const Type& part) { return !part || part.is<IncompleteTypeNode>(); });
}

// Returns what is wrong within an expression from a user: JSON may have operands of several dtypes. Empty when it is
// well-formed.
std::string operand_fault(const PrimExpr& root) {
  std::vector<PrimExpr> pending{root};
  std::unordered_set<const Object*> seen;
  while (!pending.empty()) {
    const PrimExpr at = std::move(pending.back());
    pending.pop_back();
    if (!at) return "has a part that is missing";
    if (!seen.insert(at.object()).second) continue;
    map_operands(at, [&](const PrimExpr& operand) { return pending.emplace_back(operand); });
    const auto* binary = at.as<BinaryNode>();
    if (binary == nullptr || !binary->a || !binary->b) continue;
    if (binary->a->dtype != binary->b->dtype)
      return fmt::format("has {} of {} and {}", name_of(binary->op), binary->a->dtype, binary->b->dtype);
    const bool is_condition = is_comparison(binary->op) || is_logical(binary->op);
    if (at->dtype != (is_condition ? DataType::bool_() : binary->a->dtype))
      return fmt::format("has {} as {}", name_of(binary->op), at->dtype);
  }
  return "";
}

// Returns what is wrong with a dimension from a user; empty when it is valid.
std::string dimension_fault(const PrimExpr& dim) {
  if (!dim) return "is missing";
  if (is_any(dim)) return "";
  if (dim->dtype != kIndexType) return fmt::format("has dtype {}, expected int64", dim->dtype);
  const auto value = as_int(dim);
  if (value && *value < 0) return fmt::format("is {}, which is negative", *value);
  if (value && *value > kMaxDim) return fmt::format("is {}, more than any machine holds", *value);
  return operand_fault(dim);
}

std::string tensor_fault(const TensorTypeNode& tensor) {
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    const std::string fault = dimension_fault(tensor.shape[i]);
    if (!fault.empty()) return fmt::format("dimension {} of a type {}", i, fault);
  }
  return tensor.dtype.is_void() || tensor.dtype.bits() == 0 ? "a tensor type has no dtype" : "";
}

// Returns the first fault of the type or of one within it, or empty.
std::string type_fault(const Type& type) {
  std::string fault;
  any_type(type, [&](const Type& part) {
    const auto* tensor = part.as<TensorTypeNode>();
    fault = !part ? "a part of a type is missing" : tensor != nullptr ? tensor_fault(*tensor) : "";
    return !fault.empty();
  });
  return fault;
}

// Returns what is wrong with an annotation, which must be the type of a value; empty when it is one.
std::string kind_fault(const Type& type, const IRModule& module) {
  try {
    const TypeKind kind = check_kind(type, module);
    if (kind == TypeKind::type) return "";
    return fmt::format("{} is a {}, expected a type", to_string(type), name_of(kind));
  } catch (const UserError& error) {
    return error.message();
  }
}

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
  if (const auto data = module->type_definitions().get(var)) return *data;
  const GlobalTypeVar present = module->find_global_type_var(var->name_hint);
  return present ? module->type_definitions().at(present) : TypeData();
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
    places_.push_back(place_);
  }
}

void TypeErrors::add(const Span& span, std::string op, std::string message) {
  add(UserError(std::move(message), ErrorPlace{std::move(op), to_string(span)}));
}

void TypeErrors::raise(std::span<const Expr> functions, std::span<const Expr> names) {
  std::unordered_map<const Object*, std::vector<size_t>> open;  // messages by what they are about
  for (size_t i = 0; i < messages_.size(); ++i) {
    if (messages_[i].where().place.empty()) open[places_[i].object()].push_back(i);
  }
  for (size_t i = 0; i < functions.size() && !open.empty(); ++i) {
    post_order(functions[i], [&](const Expr& expr) {
      const auto found = open.find(expr.object());
      if (found == open.end()) return;
      for (const size_t message : found->second) {
        const UserError& error = messages_[message];
        const std::string name = "@" + names[i].as<GlobalVarNode>()->name_hint;
        messages_[message] = UserError(error.message(), ErrorPlace{error.where().op, name});
      }
      open.erase(found);
    });
  }
  raise();
}

void TypeErrors::show_places(const IRModule& module) {
  for (size_t i = 0; i < messages_.size(); ++i)
    messages_[i] = with_shown_place(messages_[i], places_[i] ? places_[i]->span : Span(), module);
}

void TypeErrors::raise() const {
  if (messages_.empty()) return;
  if (messages_.size() == 1) throw messages_.front();
  std::string text = fmt::format("{} type errors:", messages_.size() + not_shown_);
  for (const UserError& error : messages_) text += fmt::format("\n  {}", error.what());
  if (not_shown_ != 0) text += fmt::format("\n  ... and {} more", not_shown_);
  throw UserError(std::move(text), messages_.front().where());
}

Inferencer::Inferencer(IRModule module)
    : module_(std::move(module)), solver_([this](const PrimVarNode* symbol) { return is_fixed(symbol); }) {}

Expr Inferencer::run(const Expr& expr) { return run_all({expr}).front(); }

std::vector<Expr> Inferencer::run_all(const std::vector<Expr>& exprs) {
  for (size_t i = exprs.size(); i-- > 0;) need(exprs[i]);
  solve();
  set_types();
  std::vector<Expr> result;
  for (const Expr& expr : exprs) result.push_back(memo_.at(expr.get()).expr);
  return result;
}

void Inferencer::step(const Frame& frame) {
  solver_.set_place(frame.expr);
  errors_.set_place(frame.expr);
  try {
    visit(frame);
  } catch (const UserError& error) {  // a type that became too deep
    if (!is_plain(error)) throw;
    fail(frame.expr, frame.expr->span, "", error.message());
  }
  ask_constraints();
}

void Inferencer::visit(const Frame& frame) {
  const Expr& e = frame.expr;
  if (e.is<CallNode>()) return visit_call(e.cast<CallNode>(), frame.stage);
  if (const auto* constant = e.as<ConstantNode>()) return finish(e, constant->tensor_type());
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
    return fail(e, e->span, op->name, "an op is not a value; wrap it: fn (%x) { op(%x) }");
  fail(e, e->span, "", fmt::format("a {} is not a relay expression", e->key()));
}

void Inferencer::need(const Expr& expr) {
  HEADRACE_CHECK(expr.defined(), "an expression has a null child");
  if (!is_known(expr)) later(expr, 0);
}

void Inferencer::need_all(const Array<Expr>& exprs) {
  for (size_t i = exprs.size(); i-- > 0;) need(exprs[i]);
}

bool Inferencer::all_typed(const Array<Expr>& exprs) const {
  return std::all_of(exprs.begin(), exprs.end(), [&](const Expr& e) { return memo_.at(e.get()).type.defined(); });
}

Type Inferencer::type_of(const Expr& expr) {
  Type& type = memo_.at(expr.get()).type;
  const Type known = resolved(expr, type);
  if (!known) type = {};  // reported once
  return known;
}

Type Inferencer::resolved(const Expr& at, const Type& type) {
  if (!type) return {};
  try {
    return solver_.resolve(type);
  } catch (const UserError& error) {
    errors_.set_place(at);
    errors_.add(at->span, "", error.message());
    return {};
  }
}

void Inferencer::finish(const Expr& original, Type type) {
  if (type && !type.is<TensorTypeNode>() && !solver_.is_remembered(type)) {
    if (type_size(type, kMaxTypeSize) == kMaxTypeSize)
      return fail(original, original->span, "",
                  fmt::format("the type nests deeper than {} or has more than {} parts", kMaxTypeDepth, kMaxTypeSize));
    solver_.remember_closed(type);
  }
  const auto [it, is_new] = memo_.try_emplace(original.get(), Typed{original, type});
  if (is_new) return order_.push_back(original);
  waiting_nodes_.erase(original.get());
  const Type before = it->second.type;
  if (before && type && !solver_.unify(before, type))
    fail(original, original->span, "",
         fmt::format("it is {} and must be {}{}", to_string(type), to_string(resolved(original, before)),
                     solver_.why()));
}

void Inferencer::fail(const Expr& original, Span span, std::string op, std::string message) {
  errors_.set_place(original);
  errors_.add(span, std::move(op), std::move(message));
  memo_[original.get()] = {original, {}};
  waiting_nodes_.erase(original.get());
}

bool Inferencer::agree(const Expr& at, const Type& a, const Type& b, const std::function<std::string()>& message) {
  if (!a || !b || solver_.unify(a, b)) return true;
  errors_.set_place(at);
  errors_.add(at->span, "", message() + solver_.why());
  return false;
}

std::string Inferencer::annotation_fault(const Type& type) const {
  if (type && type_size(type, kMaxTypeSize) == kMaxTypeSize) return "a type is too large or nests too deep";
  const std::string fault = type_fault(type);
  return fault.empty() ? kind_fault(type, module_) : fault;
}

bool Inferencer::check_annotation(const Type& type, const Span& span) {
  const std::string fault = annotation_fault(type);
  if (!fault.empty()) errors_.add(span, "", fault);
  return fault.empty();
}

static void check_definitions(const IRModule& module) {
  try {
    check_kinds(module);
  } catch (const UserError& error) {
    throw with_shown_place(error, {}, module);
  }
}

// Infers a module; with `may_lack_parts`, returns the module unchanged where its only errors are undetermined parts of
// types.
static TypedModule infer_module(const IRModule& given, bool may_lack_parts) {
  const IRModule module = snapshot(given);  // it is read many times, while others may add to it
  check_definitions(module);
  Inferencer inferencer(module);
  std::vector<Expr> exprs;
  for (const auto& [var, function] : module->functions()) {
    if (function.is<FunctionNode>()) exprs.push_back(function);
  }
  const size_t count = exprs.size();
  // Types the variables as the functions are typed; a variable without references gets its type, too.
  for (const auto& [var, function] : module->functions()) {
    if (function.is<FunctionNode>()) exprs.push_back(var);
  }
  const std::vector<Expr> results = inferencer.run_all(exprs);
  inferencer.report_escapes(exprs, false);
  if (may_lack_parts && inferencer.lacks_parts_only()) return {given, {}};
  TypeErrors errors = inferencer.take_errors();
  errors.show_places(module);
  errors.raise(std::span(exprs).first(count), std::span(exprs).subspan(count));
  bool changed = false;
  Map<GlobalVar, BaseFunc> typed;
  size_t next = 0;
  for (const auto& [var, function] : module->functions()) {
    const bool is_relay = function.is<FunctionNode>();
    const GlobalVar new_var = is_relay ? results[count + next].cast<GlobalVarNode>() : var;
    const BaseFunc new_function = is_relay ? results[next++].cast<BaseFuncNode>() : function;
    changed = changed || new_var != var || new_function != function;
    typed.set(new_var, new_function);
  }
  ValueMap values = inferencer.take_values();
  // Definitions that other threads have added meanwhile are not typed.
  const bool is_same =
      module->functions().same_as(given->functions()) && module->type_definitions().same_as(given->type_definitions());
  if (!changed) return {is_same ? given : module, std::move(values)};
  module->set_functions(std::move(typed));
  return {module, std::move(values)};
}

TypedModule infer_type_and_values(const IRModule& module) { return infer_module(module, false); }

IRModule infer_type_if_settled(const IRModule& module) { return infer_module(module, true).module; }

IRModule infer_type(const IRModule& module) { return infer_type_and_values(module).module; }

Expr infer_type(const Expr& expr, const IRModule& module) {
  Inferencer inferencer(module);
  Expr typed = inferencer.run(expr);
  inferencer.report_escapes({expr}, true);
  TypeErrors errors = inferencer.take_errors();
  errors.show_places(module);
  errors.raise();
  return typed;
}

}  // namespace headrace::relay
