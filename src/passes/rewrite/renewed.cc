#include "passes/rewrite/renewed.h"

#include <algorithm>

#include "ir/type_parts.h"
#include "relay/scopes.h"

namespace headrace::passes {

using relay::CallNode;
using relay::Clause;
using relay::FunctionNode;
using relay::IfNode;
using relay::LetNode;
using relay::MatchNode;
using relay::RefCreateNode;
using relay::RefReadNode;
using relay::RefWriteNode;
using relay::TupleGetItemNode;
using relay::TupleNode;
using relay::Var;

namespace {

Type retyped(const Type& type, const relay::TypeBindings& bindings) {
  const bool is_plain = !type || (bindings.symbols.empty() && bindings.types.empty());
  return is_plain ? type : relay::instantiate(type, [](const Object*) { return false; }, bindings);
}

template <typename T>
bool copy_as(const Expr& expr, Expr& copy) {
  const auto* node = expr.as<T>();
  if (node != nullptr) copy = copy_with(*node, [](T&) {});
  return node != nullptr;
}

// Makes another node with the same fields.
Expr another(const Expr& expr) {
  Expr copy;
  const bool is_copied = copy_as<CallNode>(expr, copy) || copy_as<TupleNode>(expr, copy) ||
                         copy_as<TupleGetItemNode>(expr, copy) || copy_as<FunctionNode>(expr, copy) ||
                         copy_as<LetNode>(expr, copy) || copy_as<IfNode>(expr, copy) ||
                         copy_as<MatchNode>(expr, copy) || copy_as<RefCreateNode>(expr, copy) ||
                         copy_as<RefReadNode>(expr, copy) || copy_as<RefWriteNode>(expr, copy);
  return is_copied ? copy : expr;
}

class Renewer {
 public:
  explicit Renewer(const Renewal& renewal) : renewal_(renewal) {}

  Expr run(const Expr& root) {
    relay::post_order(root, [&](const Expr& node) { find_binders(node); });
    return relay::rewrite_post_order(root, [&](const Expr& before, const Expr& after) { return renew(before, after); });
  }

 private:
  void bind(const Var& var) {
    if (renewal_.values.contains(var.object())) return;
    vars_.emplace(var.object(),
                  relay::make_var(var->name_hint, retyped(var->type_annotation, renewal_.types), var->span));
  }

  void find_binders(const Expr& node) {
    if (const auto* let = node.as<LetNode>()) bind(let->var);
    if (const auto* function = node.as<FunctionNode>()) {
      for (const Var& param : function->params) bind(param);
    }
    if (const auto* match = node.as<MatchNode>()) {
      for (const Clause& clause : match->clauses) {
        for (const Var& var : relay::pattern_vars(clause->lhs)) bind(var);
      }
    }
  }

  Expr renew(const Expr& before, const Expr& after) const {
    if (const auto value = renewal_.values.find(before.object()); value != renewal_.values.end()) return value->second;
    if (const auto var = vars_.find(before.object()); var != vars_.end()) return var->second;
    if (relay::is_atomic(before)) return before;
    const Expr copy = after == before ? another(before) : after;
    if (const auto* call = copy.as<CallNode>(); call != nullptr && !call->type_args.empty()) return retype(*call);
    if (const auto* function = copy.as<FunctionNode>()) {
      return copy_with(*function, [&](FunctionNode& f) { f.ret_type = retyped(f.ret_type, renewal_.types); });
    }
    return copy;
  }

  Expr retype(const CallNode& call) const {
    Array<Type> type_args;
    for (const Type& type : call.type_args) type_args.push_back(retyped(type, renewal_.types));
    return copy_with(call, [&](CallNode& copy) { copy.type_args = type_args; });
  }

  const Renewal& renewal_;
  std::unordered_map<const Object*, Expr> vars_;
};

}  // namespace

Expr renewed(const Expr& expr, const Renewal& renewal) { return Renewer(renewal).run(expr); }

void match_types(const Type& formal, const Type& actual, relay::TypeBindings& bindings) {
  if (!formal || !actual) return;
  if (const auto* var = formal.as<TypeVarNode>()) {
    bindings.types.emplace(var, actual);
  } else if (const auto* tensor = formal.as<TensorTypeNode>()) {
    const auto* other = actual.as<TensorTypeNode>();
    for (size_t i = 0; other != nullptr && i < std::min(tensor->shape.size(), other->shape.size()); ++i) {
      if (const auto* symbol = tensor->shape[i].as<PrimVarNode>()) bindings.symbols.emplace(symbol, other->shape[i]);
    }
  } else if (formal->type_index() == actual->type_index()) {
    const Array<Type> parts = type_children(formal), others = type_children(actual);
    for (size_t i = 0; i < std::min(parts.size(), others.size()); ++i) match_types(parts[i], others[i], bindings);
  }
}

// Returns the type from inference, or else as written.
static Type type_of_param(const Var& param) {
  return param->has_checked_type() ? param->checked_type() : param->type_annotation;
}

static Type type_of_result(const FunctionNode& function) {
  return function.has_checked_type() ? function.checked_type().as<FuncTypeNode>()->ret_type : function.ret_type;
}

static bool knows_params(const relay::TypeBindings& bindings, const FunctionNode& function) {
  bool all_known = std::all_of(function.type_params.begin(), function.type_params.end(),
                               [&](const TypeVar& var) { return bindings.types.contains(var.get()); });
  for (const Var& param : function.params) {
    const Type type = type_of_param(param);
    if (!type) continue;
    relay::visit_symbols(
        type, [&](const PrimVarNode* symbol) { all_known = all_known && bindings.symbols.contains(symbol); });
  }
  return all_known;
}

CallTypes call_types(const CallNode& call) {
  const auto type_of = [](const ExprNode& e) { return e.has_checked_type() ? e.checked_type() : Type(); };
  CallTypes types{call.type_args.to_vector(), {}, type_of(call)};
  for (const Expr& arg : call.args) types.args.push_back(type_of(*arg));
  return types;
}

bool bind_types(const FunctionNode& function, const CallTypes& call, relay::TypeBindings& bindings) {
  if (call.args.size() != function.params.size()) return false;
  relay::TypeBindings own;
  // Matches the result first: inference found it, while arguments may be written with `?`.
  match_types(type_of_result(function), call.result, own);
  for (size_t i = 0; i < call.args.size(); ++i) match_types(type_of_param(function.params[i]), call.args[i], own);
  if (!call.type_args.empty()) own.types.clear();
  for (size_t i = 0; i < std::min(function.type_params.size(), call.type_args.size()); ++i)
    own.types.emplace(function.type_params[i].get(), call.type_args[i]);
  for (const auto& [symbol, value] : own.symbols) bindings.symbols.insert_or_assign(symbol, value);
  for (const auto& [var, type] : own.types) bindings.types.insert_or_assign(var, type);
  return knows_params(bindings, function);
}

}  // namespace headrace::passes
