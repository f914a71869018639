#include "passes/rewrite/effects.h"

#include "passes/rewrite/for_each_function.h"
#include "relay/infer/infer_type.h"
#include "relay/op_keys.h"
#include "relay/place_lets.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;
using relay::LetNode;

namespace {

// Returns every node of the module, operands first, functions' bodies included.
std::vector<Expr> all_nodes(const IRModule& module) {
  std::vector<Expr> nodes;
  std::unordered_set<const Object*> seen;
  const auto add = [&](const Expr& root) {
    relay::post_order(root, [&](const Expr& e) {
      if (seen.insert(e.object()).second) nodes.push_back(e);
    });
  };
  for (const auto& [var, function] : module->functions()) {
    if (function.is<FunctionNode>()) add(function);
  }
  return nodes;
}

// Finds the functions behind callees: functions bound by a let, and functions of the module.
class Callees {
 public:
  Callees(const IRModule& module, const std::vector<Expr>& nodes) : module_(module) {
    for (const Expr& node : nodes) {
      const auto* let = node.as<LetNode>();
      if (let != nullptr && let->value.is<FunctionNode>()) bound_[let->var.object()] = let->value;
    }
  }
  // Returns the function that a callee is, or null.
  const FunctionNode* function_of(const Expr& callee) const {
    if (const auto* function = callee.as<FunctionNode>()) return function;
    const auto bound = bound_.find(callee.object());
    if (bound != bound_.end()) return bound->second.as<FunctionNode>();
    const auto* global = callee.as<GlobalVarNode>();
    const GlobalVar var = global == nullptr ? GlobalVar() : module_->find_global_var(global->name_hint);
    return var ? module_->functions().at(var).as<FunctionNode>() : nullptr;
  }

 private:
  const IRModule& module_;
  std::unordered_map<const Object*, Expr> bound_;
};

// Effects rise from a node to its users, and from a function's body to the calls of the function.
class EffectFlow {
 public:
  EffectFlow(const IRModule& module, bool reads, std::unordered_set<const Object*>& effectful)
      : nodes_(all_nodes(module)), callees_(module, nodes_), reads_(reads), effectful_(effectful) {
    for (const Expr& node : nodes_) {
      if (starts_one(node)) mark(node.object());
    }
    if (pending_.empty()) return;  // as in most models
    for (const Expr& node : nodes_) connect(node);
    while (!pending_.empty()) {
      const Object* node = pending_.back();
      pending_.pop_back();
      for (const Object* user : users_[node]) mark(user);
    }
  }

 private:
  void mark(const Object* node) {
    if (effectful_.insert(node).second) pending_.push_back(node);
  }

  // Returns whether a node has an effect of its own, and not only by its children or by a function that it calls.
  bool starts_one(const Expr& node) const {
    const bool reads = reads_ && (node.is<relay::RefReadNode>() || node.is<relay::RefCreateNode>());
    if (reads || node.is<relay::RefWriteNode>()) return true;
    const auto* call = node.as<CallNode>();
    if (call == nullptr || call->op.is<ConstructorNode>()) return false;
    const OpNode* op = call->as_op();
    if (op == nullptr) return callees_.function_of(call->op) == nullptr;
    return relay::is_stateful(*op);
  }

  void connect(const Expr& node) {
    if (node.is<FunctionNode>()) return;  // made, not called
    for (const Expr& child : relay::children_of(node)) users_[child.object()].push_back(node.object());
    const auto* call = node.as<CallNode>();
    if (call == nullptr || call->op.is<ConstructorNode>() || call->as_op() != nullptr) return;
    const FunctionNode* function = callees_.function_of(call->op);
    if (function != nullptr) users_[function->body.object()].push_back(node.object());
  }

  std::vector<Expr> nodes_;
  Callees callees_;
  bool reads_;
  std::unordered_set<const Object*>& effectful_;
  std::unordered_map<const Object*, std::vector<const Object*>> users_;
  std::vector<const Object*> pending_;
};

}  // namespace

Effects::Effects(const IRModule& module, bool reads) { EffectFlow(module, reads, effectful_); }

InOrder in_order(const IRModule& module) {
  Effects effects(module, true);
  if (effects.empty()) return {module, std::move(effects)};
  bool is_typed = true;
  const IRModule bound = rewrite_bodies(module, [&](const Expr& body) {
    const Expr ordered = relay::bind_effects(body, [&](const Expr& e) { return effects.of(e); });
    is_typed = is_typed && (ordered == body || body->has_checked_type());
    return ordered;
  });
  if (bound == module) return {module, std::move(effects)};
  const IRModule result = is_typed ? relay::infer_type(bound) : bound;
  return {result, Effects(result, true)};
}

}  // namespace headrace::passes
