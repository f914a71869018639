// The end of a type inference: waking what waits, setting the types, and what nothing determines.
#include "ir/type_parts.h"
#include "relay/infer/escapes.h"
#include "relay/infer/inferencer.h"
#include "relay/infer/unmatched_cases.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

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

// Returns the node itself, or a copy when it has another type: from an earlier inference, or from another thread just
// now.
Expr with_type(const Expr& expr, const Type& type) {
  if (same_type(expr->offer_checked_type(type), type)) return expr;
  Expr copy = copy_untyped(expr);
  copy->set_checked_type(type);
  return copy;
}

std::string describe(const std::vector<Type>& types) {
  std::string text;
  for (const Type& type : types) text += (text.empty() ? "" : ", ") + to_string(type);
  return text;
}

}  // namespace

void Inferencer::wait(const Expr& original, const std::vector<Type>& of) {
  if (!is_known(original)) finish(original, make_incomplete_type());
  waiting_nodes_.insert(original.get());
  bool waits = false;
  for (const Type& type : of) {
    for (const Object* unknown : solver_.unknowns(type)) {
      waits = true;
      if (registered_.emplace(unknown, original.get()).second) waiting_[unknown].push_back(original);
    }
  }
  if (!waits) asked_last_.push_back(original);
}

// Puts nodes back on the list that wait for unknowns settled since the last call.
void Inferencer::wake() {
  for (const Object* unknown : solver_.take_settled()) {
    const auto it = waiting_.find(unknown);
    if (it == waiting_.end()) continue;
    for (const Expr& node : it->second) {
      registered_.erase({unknown, node.get()});
      if (waiting_nodes_.contains(node.get())) later(node, 1);
    }
    waiting_.erase(it);
  }
}

// Runs the worklist until nothing more can be inferred. When it is empty: uses the types that ops assume of their
// arguments; then solves equations of dimensions; then makes unknown dimensions `?`; then asks calls again whose
// relation depends on more than types.
void Inferencer::solve() {
  for (;;) {
    while (!stack_.empty()) {
      const Frame frame = std::move(stack_.back());
      stack_.pop_back();
      if (frame.stage > 0 || !is_known(frame.expr)) step(frame);
    }
    wake();
    if (!stack_.empty() || take_assumptions() || solver_.solve_equations() || solver_.settle_all_dims()) continue;
    if (asked_last_.empty() || waiting_nodes_.size() == asked_before_) break;
    asked_before_ = waiting_nodes_.size();
    for (const Expr& node : std::exchange(asked_last_, {})) later(node, 1);
  }
  report_constraints();
  report_waiting();
  check_calls();
  solver_.take_owed();  // asked where the types met first
  report_equations();
  for (const Ref<MatchNode>& match : std::exchange(matches_, {})) check_match(match);
}

// Uses the types that ops assume of their arguments; returns true when one of them settled a type.
bool Inferencer::take_assumptions() {
  bool any = false;
  for (const Assumption& assumption : std::exchange(assumed_, {})) {
    if (!solver_.root_of(assumption.unknown).is<IncompleteTypeNode>()) continue;
    solver_.set_place(assumption.place);
    solver_.unify(assumption.unknown, assumption.type);
    any = true;
  }
  ask_constraints();
  return any;
}

void Inferencer::report_equations() {
  for (const TypeSolver::Equation& broken : solver_.take_broken()) {
    if (errors_.is_about(broken.place)) continue;  // the call whose argument does not fit has been reported
    errors_.set_place(broken.place);
    errors_.add(broken.place->span, "",
                fmt::format("the dimension {} must be {}", to_string(broken.a), to_string(broken.b)));
  }
}

void Inferencer::report_waiting() {
  asked_before_ = 0;
  for (const Expr& node : std::exchange(asked_last_, {})) {
    const auto* call = node.as<CallNode>();
    std::vector<Type> types;
    for (const Expr& arg : call->args) types.push_back(type_of(arg));
    fail(node, node->span, call->as_op()->name,
         fmt::format("the argument types do not determine the result: {}", describe(types)));
  }
}

// Arguments that were unknown at the call are held against the parameters again.
void Inferencer::check_calls() {
  for (const OpenCall& open : std::exchange(open_calls_, {})) {
    errors_.set_place(open.call);
    solver_.set_place(open.call);
    try {
      unify_arguments(open.call, *open.function, open.arg_types);
    } catch (const UserError& error) {
      errors_.add(error);
    }
  }
}

void Inferencer::check_match(const Ref<MatchNode>& match) {
  const Type type = strip_empty_call(type_of(match->data));
  errors_.set_place(match);
  const auto* call = type.as<TypeCallNode>();
  const TypeData data = find_type_data(module_, (call == nullptr ? type : call->func).cast<GlobalTypeVarNode>());
  if (data && data->constructors.empty()) {
    errors_.add(
        match->span, "match",
        fmt::format("a value of {} cannot be matched: the type is extern, it has no constructors", to_string(type)));
  } else if (match->complete) {
    check_complete(*match);
  }
}

void Inferencer::check_complete(const MatchNode& match) {
  try {
    std::string missing;
    for (const Pattern& pattern : unmatched_cases(match, module_))
      missing += (missing.empty() ? "" : ", ") + case_text(pattern);
    if (!missing.empty()) errors_.add(match.span, "match", fmt::format("no clause covers {}", missing));
  } catch (const UserError& error) {
    errors_.add(match.span, "match", error.message());
  }
}

void Inferencer::set_types() {
  for (const Expr& node : std::exchange(order_, {})) set_type(node);
  if (errors_.empty()) report_unknown();
  unknown_.clear();
}

void Inferencer::set_type(const Expr& original) {
  const Type type = type_of(original);
  if (!type) return;
  if (solver_.is_open(type)) {
    unknown_.push_back(original);
    return;
  }
  if (const auto* call = original.as<CallNode>(); call != nullptr && call->as_op() == nullptr)
    check_result(original, type);
  const Expr typed = with_type(rebuilt(original, type), type);
  if (const auto* global = original.as<GlobalVarNode>()) globals_[global->name_hint] = typed.cast<GlobalVarNode>();
  memo_[original.get()] = {typed, typed->checked_type()};
}

void Inferencer::check_result(const Expr& call, const Type& type) {
  for (const Type& leaf : leaves_of(type)) {
    const auto* tensor = leaf.as<TensorTypeNode>();
    for (size_t i = 0; tensor != nullptr && i < tensor->shape.size(); ++i) {
      const PrimExpr& dim = tensor->shape[i];
      if (is_any(dim)) continue;
      bool has_symbol = false;
      visit_symbols(dim, [&](const PrimVarNode*) { has_symbol = true; });
      const auto value = as_int(dim);
      if (has_symbol || (value && *value >= 0)) continue;
      errors_.set_place(call);
      return errors_.add(call->span, "",
                         fmt::format("the result would be {}, whose dimension {} is not a size", to_string(type), i));
    }
  }
}

void Inferencer::report_escapes(const std::vector<Expr>& exprs, bool is_part) {
  if (!errors_.empty()) return;
  const auto type_of_node = [&](const Expr& node) {
    const auto it = memo_.find(node.get());
    return it == memo_.end() ? Type() : it->second.type;
  };
  for (const Escape& escape : find_escapes(exprs, is_part, type_of_node)) {
    errors_.set_place(escape.at);
    errors_.add(escape.at->span, "",
                fmt::format("{} in {} is bound by no function around it", escape.what, to_string(escape.type)));
  }
}

// Rebuilds a node with its new children; parameters, calls and functions also get the types that were inferred for
// them.
Expr Inferencer::rebuilt(const Expr& original, const Type& type) {
  if (const auto* global = original.as<GlobalVarNode>()) {
    const auto present = globals_.find(global->name_hint);
    return present != globals_.end() ? present->second : module_->find_global_var(global->name_hint);
  }
  if (const auto* var = original.as<VarNode>()) {
    if (!annotate_.contains(var)) return original;
    return copy_with(*var, [&](VarNode& copy) { copy.type_annotation = type; });
  }
  std::vector<Expr> children = children_of(original);
  bool changed = false;
  for (Expr& child : children) {
    const auto it = memo_.find(child.get());
    if (it == memo_.end() || it->second.expr == child) continue;
    child = it->second.expr;
    changed = true;
  }
  Expr result = changed ? with_children(original, children) : original;
  if (const auto left = left_type_args_.find(original.get()); left != left_type_args_.end()) {
    const Array<Type> types = map_types(left->second, [&](const Type& arg) { return solver_.resolve(arg); });
    // One that is in no type at all may be anything.
    if (std::any_of(types.begin(), types.end(), [&](const Type& arg) { return solver_.is_open(arg); })) return result;
    return copy_with(*result.as<CallNode>(), [&](CallNode& copy) { copy.type_args = types; });
  }
  const auto* function = result.as<FunctionNode>();
  if (function == nullptr || !function->ret_type) return result;
  const Type ret = solver_.resolve(function->ret_type);
  if (ret == function->ret_type) return result;
  return copy_with(*function, [&](FunctionNode& copy) { copy.ret_type = ret; });
}

// Reports types that nothing determines: at the parameters and free variables that could give them, or else at the
// variables bound to such a value, or else at the first expression.
void Inferencer::report_unknown() {
  report_variables(false);
  if (errors_.empty()) report_variables(true);
  if (errors_.empty() && !unknown_.empty()) report_expression(unknown_.front());
}

void Inferencer::report_variables(bool with_values) {
  for (const Expr& node : unknown_) {
    const auto* var = node.as<VarNode>();
    if (var == nullptr || has_value_.contains(var) != with_values) continue;
    const Type type = type_of(node);
    (type.is<IncompleteTypeNode>() ? lacks_whole_types_ : lacks_parts_) = true;
    const std::string known = type.is<IncompleteTypeNode>() ? "" : fmt::format(" (so far {})", to_string(type));
    errors_.set_place(node);
    errors_.add(node->span, "",
                fmt::format("the type of variable '%{}' cannot be inferred{}; annotate it", var->name_hint, known));
  }
}

void Inferencer::report_expression(const Expr& first) {
  const auto* call = first.as<CallNode>();
  const auto* global = call != nullptr ? call->op.as<GlobalVarNode>() : first.as<GlobalVarNode>();
  const std::string what = global != nullptr ? fmt::format("what '@{}' gives", global->name_hint) : "this expression";
  const Type type = type_of(first);
  (type.is<IncompleteTypeNode>() ? lacks_whole_types_ : lacks_parts_) = true;
  errors_.set_place(first);
  errors_.add(first->span, call != nullptr && call->as_op() != nullptr ? call->as_op()->name : "",
              fmt::format("the type of {} cannot be inferred: {}", what, to_string(type)));
}

ValueMap Inferencer::take_values() {
  ValueMap result;
  for (auto& [original, value] : values_) {
    const auto it = memo_.find(original);
    if (it != memo_.end()) result.emplace(it->second.expr.get(), std::move(value));
  }
  return result;
}

}  // namespace headrace::relay
