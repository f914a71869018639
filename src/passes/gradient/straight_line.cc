#include "passes/gradient/straight_line.h"

#include <algorithm>

#include "passes/forms/to_graph_normal_form.h"
#include "passes/functions/inline.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/inline_lets.h"
#include "passes/rewrite/renewed.h"
#include "relay/function_attrs.h"
#include "relay/infer/infer_type.h"

namespace headrace::passes {

using relay::CallNode;
using relay::FunctionNode;

namespace {

// Calls of function literals become the functions' bodies. `nodes_left` counts down what that may add; negative: calls
// stayed for want of more.
class LiteralApplier {
 public:
  LiteralApplier(const IRModule& module, int64_t& nodes_left) : effects_(module, true), nodes_left_(nodes_left) {}

  Expr applied(const Expr& body) {
    return relay::rewrite_post_order(body, [&](const Expr& before, const Expr& after) {
      const auto* call = before.as<CallNode>();
      const auto* function = call == nullptr ? nullptr : call->op.as<FunctionNode>();
      return function == nullptr ? after : apply(*call, *after.as<CallNode>(), *function);
    });
  }

 private:
  Expr apply(const CallNode& before, const CallNode& after, const FunctionNode& function) {
    const auto& callee = *after.op.as<FunctionNode>();
    Renewal renewal;
    const bool stays =
        relay::is_left_alone(function) || callee.params.size() != before.args.size() ||
        std::any_of(before.args.begin(), before.args.end(), [&](const Expr& arg) { return effects_.of(arg); });
    if (stays || !bind_types(function, call_types(before), renewal.types)) return ref(&after);
    int64_t added = 0;
    relay::post_order(callee.body, [&](const Expr&) { ++added; });
    if (added > nodes_left_) {
      nodes_left_ = -1;
      return ref(&after);
    }
    nodes_left_ -= added;
    for (size_t i = 0; i < callee.params.size(); ++i) renewal.values.emplace(callee.params[i].object(), after.args[i]);
    return renewed(callee.body, renewal);
  }

  Effects effects_;
  int64_t& nodes_left_;
};

// A let of a function is dropped before others are: in its body stand the names of what it captures, not the values.
IRModule inline_function_lets(const IRModule& module) {
  const Effects effects(module, true);
  const auto is_function = [](const relay::LetNode& let) {
    return let.value.is<FunctionNode>() || let.value.is<relay::VarNode>();
  };
  return rewrite_bodies(module, [&](const Expr& body) { return inline_lets(body, effects, is_function); });
}

IRModule apply_literals(const IRModule& module, int64_t& nodes_left) {
  LiteralApplier applier(module, nodes_left);
  return rewrite_bodies(module, [&](const Expr& body) { return applier.applied(body); });
}

}  // namespace

IRModule straight_line(const IRModule& module) {
  constexpr int kMostRounds = 64;
  int64_t nodes_left = kMostInlinedNodes;
  IRModule result = module;
  const auto take = [&](const IRModule& next) {
    if (nodes_left < 0)
      throw_user_error(
          "FirstOrderGradient puts functions in the place of their calls, and there are too many calls to inline: they "
          "would add more than {} nodes; let the functions call each other less often",
          kMostInlinedNodes);
    const bool is_new = next != result;
    if (is_new) result = relay::infer_type(next);
    return is_new;
  };
  for (int round = 0; round < kMostRounds; ++round) {
    bool changed = take(inline_calls(result, nodes_left));
    changed |= take(inline_function_lets(result));
    changed |= take(apply_literals(result, nodes_left));
    if (!changed && !take(to_graph_normal_form(result))) break;
  }
  return result;
}

}  // namespace headrace::passes
