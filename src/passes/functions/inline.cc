#include "passes/functions/inline.h"

#include <unordered_set>

#include "graph/components.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/renewed.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/scopes.h"

namespace headrace::passes {

using relay::CallNode;
using relay::Function;
using relay::FunctionNode;

namespace {

bool is_marked(const FunctionNode& function) {
  for (const char* name : {"Inline", "inline"}) {
    const auto value = function.attrs.get(name);
    if (value && !(value->is<int64_t>() && value->as<int64_t>() == 0)) return !relay::is_left_alone(function);
  }
  return false;
}

std::vector<GlobalVar> marked_functions(const IRModule& module) {
  std::vector<GlobalVar> marked;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node != nullptr && is_marked(*node)) marked.push_back(var);
  }
  return marked;
}

// In the module's order.
std::vector<GlobalVar> called_functions(const IRModule& module) {
  std::unordered_set<std::string> names;
  for (const auto& [var, function] : module->functions()) {
    if (!function.is<FunctionNode>()) continue;
    relay::post_order(function, [&](const Expr& e) {
      const auto* call = e.as<CallNode>();
      if (const auto* global = call == nullptr ? nullptr : call->op.as<GlobalVarNode>())
        names.insert(global->name_hint);
    });
  }
  std::vector<GlobalVar> called;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node != nullptr && names.contains(var->name_hint) && !relay::is_left_alone(*node)) called.push_back(var);
  }
  return called;
}

// A marked function: its body with the marked calls in it inlined.
struct Inlined {
  const FunctionNode* function = nullptr;
  Expr body;
  int64_t num_nodes = 0;
  std::unordered_set<const Object*> used_inside;  // variables that its inner functions use
};

class Inliner {
 public:
  explicit Inliner(InOrder module, int64_t most_nodes = kMostInlinedNodes)
      : module_(std::move(module.module)), effects_(std::move(module.effects)), nodes_left_(most_nodes) {}
  int64_t nodes_left() const { return nodes_left_; }

  // Calls of `marked` functions become their bodies; `drops`: those that nothing refers to then are dropped.
  IRModule run(const std::vector<GlobalVar>& marked, bool drops) {
    for (const GlobalVar& var : without_cycles(marked)) add(var);
    const IRModule result = rewrite_bodies(module_, [&](const Expr& body) { return inlined(body); });
    return drops ? drop_unused(result) : result;
  }

 private:
  // Those that are in no cycle, callees first.
  std::vector<GlobalVar> without_cycles(const std::vector<GlobalVar>& marked) const {
    std::unordered_map<std::string, int32_t> index;
    for (const GlobalVar& var : marked) index.emplace(var->name_hint, static_cast<int32_t>(index.size()));
    std::vector<graph::Edge> edges;
    std::vector<bool> calls_itself(marked.size(), false);
    for (size_t i = 0; i < marked.size(); ++i) {
      relay::post_order(module_->functions().at(marked[i]), [&](const Expr& e) {
        const auto* global = e.as<GlobalVarNode>();
        const auto to = global == nullptr ? index.end() : index.find(global->name_hint);
        if (to == index.end()) return;
        edges.push_back({static_cast<int32_t>(i), to->second});
        if (to->second == static_cast<int32_t>(i)) calls_itself[i] = true;
      });
    }
    std::vector<GlobalVar> order;
    for (const auto& part : graph::strong_components({static_cast<int32_t>(marked.size()), edges})) {
      const auto first = static_cast<size_t>(part[0]);
      if (part.size() == 1 && !calls_itself[first]) order.push_back(marked[first]);
    }
    return order;
  }

  void add(const GlobalVar& var) {
    Inlined entry;
    entry.function = module_->functions().at(var).as<FunctionNode>();
    entry.body = inlined(entry.function->body);
    const std::unordered_set<const Object*> params = [&] {
      std::unordered_set<const Object*> set;
      for (const relay::Var& param : entry.function->params) set.insert(param.object());
      return set;
    }();
    std::vector<Expr> inner;
    const auto is_function = [](const Expr& e) { return e.is<FunctionNode>(); };
    relay::post_order(
        entry.body, [&](const Expr& e) { return !is_function(e); },
        [&](const Expr& e) {
          if (is_function(e)) inner.push_back(e);
        });
    // One walk over all inner functions: what they share is met once.
    relay::post_order(relay::make_tuple(Array<Expr>(inner)), [&](const Expr& e) {
      if (params.contains(e.object())) entry.used_inside.insert(e.object());
    });
    relay::post_order(entry.body, [&](const Expr&) { ++entry.num_nodes; });
    functions_.emplace(var->name_hint, std::move(entry));
  }

  Expr inlined(const Expr& body) {
    return relay::rewrite_post_order(body, [&](const Expr& before, const Expr& after) {
      const auto* call = before.as<CallNode>();
      const auto* global = call == nullptr ? nullptr : call->op.as<GlobalVarNode>();
      const auto found = global == nullptr ? functions_.end() : functions_.find(global->name_hint);
      if (found == functions_.end() || found->second.function->params.size() != call->args.size()) return after;
      return inline_call(*call, *after.as<CallNode>(), found->second);
    });
  }

  Expr inline_call(const CallNode& before, const CallNode& after, const Inlined& callee) {
    Renewal renewal;
    if (!bind_types(*callee.function, call_types(before), renewal.types)) return ref(&after);
    if (callee.num_nodes > nodes_left_) {
      nodes_left_ = -1;
      return ref(&after);
    }
    nodes_left_ -= callee.num_nodes;
    std::vector<std::pair<relay::Var, Expr>> lets;
    for (size_t i = 0; i < before.args.size(); ++i) {
      const relay::Var& param = callee.function->params[i];
      const Expr& arg = before.args[i];
      const bool moves = relay::is_atomic(arg) || (!effects_.of(arg) && !callee.used_inside.contains(param.object()));
      if (!moves) lets.emplace_back(relay::make_var(param->name_hint, {}, param->span), after.args[i]);
      renewal.values.emplace(param.object(), moves ? after.args[i] : Expr(lets.back().first));
    }
    Expr result = renewed(callee.body, renewal);
    for (size_t i = lets.size(); i-- > 0;) result = relay::make_let(lets[i].first, lets[i].second, result, after.span);
    return result;
  }

  IRModule drop_unused(const IRModule& module) const {
    std::unordered_set<std::string> used;
    const auto is_kept = [&](const GlobalVar& var, const BaseFunc& function) {
      return var->name_hint == "main" || function->attrs.contains("global_symbol") ||
             !functions_.contains(var->name_hint);
    };
    for (const auto& [var, function] : module->functions()) {
      if (function.is<FunctionNode>() && is_kept(var, function)) reach(module, function, used);
    }
    const IRModule result = snapshot(module);
    result->set_functions({});
    for (const auto& [var, function] : module->functions()) {
      if (is_kept(var, function) || used.contains(var->name_hint)) result->add_function(var, function);
    }
    return result->functions().size() == module->functions().size() ? module : result;
  }

  // The names that `function` refers to, and through marked functions.
  void reach(const IRModule& module, const BaseFunc& root, std::unordered_set<std::string>& used) const {
    std::vector<BaseFunc> pending{root};
    while (!pending.empty()) {
      const BaseFunc function = pending.back();
      pending.pop_back();
      relay::post_order(function, [&](const Expr& e) {
        const auto* global = e.as<GlobalVarNode>();
        if (global == nullptr || !used.insert(global->name_hint).second || !functions_.contains(global->name_hint))
          return;
        pending.push_back(module->lookup(global->name_hint));
      });
    }
  }

  IRModule module_;
  Effects effects_;
  std::unordered_map<std::string, Inlined> functions_;
  int64_t nodes_left_;
};

}  // namespace

IRModule inline_functions(const IRModule& module) {
  const std::vector<GlobalVar> marked = marked_functions(module);
  return marked.empty() ? module : Inliner(in_order(module)).run(marked, true);
}

IRModule inline_calls(const IRModule& module) {
  int64_t nodes_left = kMostInlinedNodes;
  return inline_calls(module, nodes_left);
}

IRModule inline_calls(const IRModule& module, int64_t& nodes_left) {
  constexpr int kMostRounds = 64;
  IRModule result = module;
  for (int round = 0; round < kMostRounds; ++round) {
    const std::vector<GlobalVar> called = called_functions(result);
    if (called.empty()) break;
    if (round > 0) result = relay::infer_type(result);
    Inliner inliner(in_order(result), nodes_left);
    const IRModule next = inliner.run(called, false);
    if (inliner.nodes_left() == nodes_left) break;
    nodes_left = inliner.nodes_left();
    result = next;
  }
  return result;
}

}  // namespace headrace::passes
