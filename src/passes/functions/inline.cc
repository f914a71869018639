#include "passes/functions/inline.h"

#include <algorithm>
#include <unordered_set>

#include "graph/components.h"
#include "ir/type_parts.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/inline_lets.h"
#include "passes/rewrite/references.h"
#include "passes/rewrite/renewed.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"
#include "relay/scopes.h"

namespace headrace::passes {

using relay::CallNode;
using relay::Function;
using relay::FunctionNode;

namespace {

bool has_mark(const FunctionNode& function) {
  for (const char* name : {kInlineAttr, "inline"}) {
    const auto value = function.attrs.get(name);
    if (value && !(value->is<int64_t>() && value->as<int64_t>() == 0)) return true;
  }
  return false;
}

bool is_marked(const FunctionNode& function) { return has_mark(function) && !relay::is_left_alone(function); }

std::vector<GlobalVar> marked_functions(const IRModule& module) {
  std::vector<GlobalVar> marked;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node != nullptr && is_marked(*node)) marked.push_back(var);
  }
  return marked;
}

// Returns whether a function has one type: none with parameters or symbols, which each use may choose anew.
bool is_monomorphic(const FunctionNode& function) {
  const auto has_symbol = [](const Type& part) {
    const auto* tensor = part.as<TensorTypeNode>();
    return tensor != nullptr && std::any_of(tensor->shape.begin(), tensor->shape.end(),
                                            [](const PrimExpr& dim) { return !as_int(dim) && !is_any(dim); });
  };
  return function.type_params.empty() &&
         std::none_of(function.params.begin(), function.params.end(), [&](const relay::Var& param) {
           return !param->has_checked_type() || any_type(param->checked_type(), has_symbol);
         });
}

using Takes = std::function<bool(const FunctionNode&)>;  // whether calls of that function become its body

// The functions that a module calls: functions of its own, in its order; function literals, directly or through
// variables.
struct Called {
  std::vector<GlobalVar> globals;
  bool literals = false;
  std::unordered_set<const Object*> vars;  // and those that are other names of them
  bool nothing() const { return globals.empty() && !literals && vars.empty(); }
};

Called called_in(const IRModule& module, const Takes& takes) {
  Called called;
  std::unordered_set<std::string> names;
  std::unordered_map<const Object*, const Object*> renamed;  // let %f = %g
  for (const auto& [var, function] : module->functions()) {
    if (!function.is<FunctionNode>()) continue;
    relay::post_order(function, [&](const Expr& e) {
      const auto* let = e.as<relay::LetNode>();
      if (let != nullptr && let->value.is<relay::VarNode>()) renamed.emplace(let->var.object(), let->value.object());
      const auto* call = e.as<CallNode>();
      if (call == nullptr) return;
      if (const auto* global = call->op.as<GlobalVarNode>()) names.insert(global->name_hint);
      if (const auto* literal = call->op.as<FunctionNode>()) called.literals |= takes(*literal);
      if (call->op.is<relay::VarNode>()) called.vars.insert(call->op.object());
    });
  }
  const std::vector<const Object*> by_call(called.vars.begin(), called.vars.end());
  for (const Object* var : by_call) {
    for (auto next = renamed.find(var); next != renamed.end(); next = renamed.find(next->second)) {
      if (!called.vars.insert(next->second).second) break;
    }
  }
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node != nullptr && names.contains(var->name_hint) && takes(*node)) called.globals.push_back(var);
  }
  return called;
}

// Drops a let of a function literal whose variable is called, and calls the literal directly. Expressions that the
// literal shares with its surroundings were evaluated at the let, so effects are ordered first.
IRModule drop_called_lets(const IRModule& module, const Called& called, const Takes& takes) {
  if (called.vars.empty()) return module;
  const InOrder ordered = in_order(module);
  const auto vars = ordered.module == module ? called.vars : called_in(ordered.module, takes).vars;
  const auto may_go = [&](const relay::LetNode& let) {
    const auto* function = let.value.as<FunctionNode>();
    return vars.contains(let.var.object()) && (function != nullptr ? takes(*function) : let.value.is<relay::VarNode>());
  };
  const IRModule result =
      rewrite_bodies(ordered.module, [&](const Expr& body) { return inline_lets(body, ordered.effects, may_go); });
  return result == ordered.module ? module : result;
}

// A function whose calls become its body.
struct Inlined {
  const FunctionNode* function = nullptr;
  Expr body;  // with the calls in it inlined
  int64_t num_nodes = 0;
  std::unordered_set<const Object*> used_inside;  // parameters that its inner functions use
  Inlined(const FunctionNode* function, Expr inlined_body);
};

Inlined::Inlined(const FunctionNode* function, Expr inlined_body) : function(function), body(std::move(inlined_body)) {
  std::unordered_set<const Object*> params;
  for (const relay::Var& param : function->params) params.insert(param.object());
  std::vector<Expr> inner;
  const auto is_function = [](const Expr& e) { return e.is<FunctionNode>(); };
  relay::post_order(
      body, [&](const Expr& e) { return !is_function(e); },
      [&](const Expr& e) {
        if (is_function(e)) inner.push_back(e);
      });
  // Walks over all inner functions at once, so that shared nodes are visited once.
  relay::post_order(relay::make_tuple(Array<Expr>(inner)), [&](const Expr& e) {
    if (params.contains(e.object())) used_inside.insert(e.object());
  });
  relay::post_order(body, [&](const Expr&) { ++num_nodes; });
}

class Inliner {
 public:
  Inliner(InOrder module, Takes takes, int64_t most_nodes)
      : module_(std::move(module.module)),
        effects_(std::move(module.effects)),
        takes_(std::move(takes)),
        nodes_left_(most_nodes) {}
  int64_t nodes_left() const { return nodes_left_; }

  // Calls of these functions, and of literals, become their bodies. With `drops` names of these functions that are
  // values become the functions, and functions that nothing refers to then are dropped.
  IRModule run(const std::vector<GlobalVar>& globals, bool drops) {
    takes_values_ = drops;
    for (const GlobalVar& var : without_cycles(globals)) add(var);
    const IRModule result = rewrite_bodies(module_, [&](const Expr& body) { return inlined(body); });
    return drops ? drop_unused(result) : result;
  }

 private:
  // Returns the functions that are in no cycle, callees first.
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
    const auto* function = module_->functions().at(var).as<FunctionNode>();
    functions_.emplace(var->name_hint, Inlined(function, inlined(function->body)));
  }

  Expr inlined(const Expr& body) {
    return relay::rewrite_post_order(body, is_taken_apart, [&](const Expr& before, const Expr& after) {
      if (const auto* name = before.as<GlobalVarNode>()) return takes_values_ ? value_of(*name) : after;
      const auto* call = before.as<CallNode>();
      if (call == nullptr) return after;
      const Expr same = with_name_of(*call, after);
      const Inlined* callee = callee_of(*call, *same.as<CallNode>());
      if (callee == nullptr || callee->function->params.size() != call->args.size()) return same;
      return inline_call(*call, *same.as<CallNode>(), *callee);
    });
  }

  // Enters all that passes enter (relay::is_entered) and, other than they do, functions that are marked only Composite:
  // their calls are inlined here, too. Those of a region, which the program marks, stay as they are.
  static bool is_taken_apart(const Expr& expr) {
    const auto* function = expr.as<FunctionNode>();
    const bool is_composite = function != nullptr && function->attrs.contains(relay::kComposite);
    return relay::is_entered(expr) || (is_composite && !relay::is_left_alone(*function));
  }

  // Returns the function that a name stands for where it is a value; the name itself where it stays.
  Expr value_of(const GlobalVarNode& name) {
    const auto found = functions_.find(name.name_hint);
    if (found == functions_.end() || !is_monomorphic(*found->second.function)) return ref(&name);
    const Inlined& inlined = found->second;
    if (inlined.num_nodes > nodes_left_) {
      nodes_left_ = -1;
      return ref(&name);
    }
    nodes_left_ -= inlined.num_nodes;
    return renewed(copy_with(*inlined.function, [&](FunctionNode& copy) { copy.body = inlined.body; }));
  }

  // A name that is called is not a value: a call that stays keeps it.
  static Expr with_name_of(const CallNode& before, const Expr& after) {
    const bool is_changed = before.op.is<GlobalVarNode>() && after.as<CallNode>()->op != before.op;
    return is_changed ? Expr(copy_with(*after.as<CallNode>(), [&](CallNode& copy) { copy.op = before.op; })) : after;
  }

  // Returns the function to inline at a call; null where the call stays. Considers a literal only while the budget of
  // new nodes lasts.
  const Inlined* callee_of(const CallNode& before, const CallNode& after) {
    if (const auto* global = before.op.as<GlobalVarNode>()) {
      const auto found = functions_.find(global->name_hint);
      return found == functions_.end() ? nullptr : &found->second;
    }
    const auto* literal = before.op.as<FunctionNode>();
    if (literal == nullptr || nodes_left_ < 0 || !takes_(*literal)) return nullptr;
    const auto found = literals_.find(literal);
    if (found != literals_.end()) return &found->second;
    return &literals_.emplace(literal, Inlined(literal, after.op.as<FunctionNode>()->body)).first->second;
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
      // To make a function is no work that more than one place should not do.
      const bool moves = relay::is_atomic(arg) || arg.is<FunctionNode>() ||
                         (!effects_.of(arg) && !callee.used_inside.contains(param.object()));
      if (!moves) lets.emplace_back(relay::make_var(param->name_hint, {}, param->span), after.args[i]);
      renewal.values.emplace(param.object(), moves ? after.args[i] : Expr(lets.back().first));
    }
    Expr result = renewed(callee.body, renewal);
    for (size_t i = lets.size(); i-- > 0;) result = relay::make_let(lets[i].first, lets[i].second, result, after.span);
    return result;
  }

  IRModule drop_unused(const IRModule& module) const {
    std::unordered_set<std::string> used;
    const std::unordered_set<std::string> named = names_in(module_);
    const auto is_kept = [&](const GlobalVar& var, const BaseFunc& function) {
      return var->name_hint == "main" || function->attrs.contains("global_symbol") ||
             !functions_.contains(var->name_hint) || !named.contains(var->name_hint);
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

  // The names of all functions that a function of the module refers to.
  static std::unordered_set<std::string> names_in(const IRModule& module) {
    std::unordered_set<std::string> names;
    for (const auto& [var, function] : module->functions()) {
      if (!function.is<FunctionNode>()) continue;
      relay::post_order(function, [&](const Expr& e) {
        if (const auto* global = e.as<GlobalVarNode>()) names.insert(global->name_hint);
      });
    }
    return names;
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
  Takes takes_;
  bool takes_values_ = false;
  std::unordered_map<std::string, Inlined> functions_;
  std::unordered_map<const FunctionNode*, Inlined> literals_;
  int64_t nodes_left_;
};

// The marked functions for other compilers that are not symbols of a library and name no function, by name.
std::unordered_map<std::string, const FunctionNode*> literals_for_compilers(const IRModule& module) {
  std::unordered_map<std::string, const FunctionNode*> literals;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    const bool is_for_compiler = node != nullptr && node->attrs.contains("Compiler");
    const bool may_go = is_for_compiler && !node->attrs.contains("global_symbol") && var->name_hint != "main";
    if (may_go && has_mark(*node) && referenced_functions(function).empty()) literals.emplace(var->name_hint, node);
  }
  return literals;
}

// Names of these functions become the functions, as in Relay; those that have lost all names are dropped. Functions
// that passes leave alone keep names.
IRModule with_literals_for_compilers(const IRModule& module) {
  const auto literals = literals_for_compilers(module);
  if (literals.empty()) return module;
  std::unordered_set<std::string> used;
  const auto literal_of = [&](const Expr& before, const Expr& after) -> Expr {
    const auto* name = before.as<GlobalVarNode>();
    const auto found = name == nullptr ? literals.end() : literals.find(name->name_hint);
    if (found == literals.end()) return after;
    used.insert(name->name_hint);
    return renewed(ref(found->second));
  };
  const IRModule named =
      rewrite_bodies(module, [&](const Expr& body) { return relay::rewrite_post_order(body, literal_of); });
  if (used.empty()) return module;
  const std::unordered_set<std::string> still_named = referenced_functions(named);
  const IRModule result = snapshot(named);
  result->set_functions({});
  for (const auto& [var, function] : named->functions()) {
    if (!used.contains(var->name_hint) || still_named.contains(var->name_hint)) result->add_function(var, function);
  }
  return result;
}

}  // namespace

IRModule inline_functions(const IRModule& module) {
  const std::vector<GlobalVar> marked = marked_functions(module);
  const Called called = called_in(module, is_marked);
  const IRModule open = drop_called_lets(module, called, is_marked);
  if (marked.empty() && !called.literals && open == module) return with_literals_for_compilers(module);
  const IRModule typed = open == module ? module : relay::infer_type(open);
  return with_literals_for_compilers(Inliner(in_order(typed), is_marked, kMostInlinedNodes).run(marked, true));
}

IRModule inline_calls(const IRModule& module) {
  int64_t nodes_left = kMostInlinedNodes;
  return inline_calls(module, nodes_left);
}

IRModule inline_calls(const IRModule& module, int64_t& nodes_left) {
  constexpr int kMostRounds = 64;
  const Takes takes = [](const FunctionNode& function) { return !relay::is_left_alone(function); };
  IRModule result = module;
  for (int round = 0; round < kMostRounds; ++round) {
    const Called called = called_in(result, takes);
    if (called.nothing()) break;
    IRModule next = drop_called_lets(result, called, takes);
    const bool drops = next != result;
    if (round > 0 || drops) next = relay::infer_type(next);
    Inliner inliner(in_order(next), takes, nodes_left);
    const IRModule inlined = inliner.run(called.globals, false);
    if (!drops && inliner.nodes_left() == nodes_left) break;
    nodes_left = inliner.nodes_left();
    result = inlined;
    if (nodes_left < 0) break;
  }
  return result;
}

}  // namespace headrace::passes
