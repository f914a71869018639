#include "passes/rewrite/renewed.h"

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

// Another node with the same fields.
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

}  // namespace headrace::passes
