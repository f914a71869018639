#include "passes/gradient/straight_line.h"

#include "passes/forms/to_graph_normal_form.h"
#include "passes/functions/inline.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "passes/rewrite/inline_lets.h"
#include "relay/infer/infer_type.h"

namespace headrace::passes {

namespace {

// Drops lets of functions before other lets: their bodies use the names of captured values, not the values.
IRModule inline_function_lets(const IRModule& module) {
  const InOrder ordered = in_order(module);
  const auto is_function = [](const relay::LetNode& let) {
    return let.value.is<relay::FunctionNode>() || let.value.is<relay::VarNode>();
  };
  const IRModule result =
      rewrite_bodies(ordered.module, [&](const Expr& body) { return inline_lets(body, ordered.effects, is_function); });
  return result == ordered.module ? module : result;
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
    if (!changed && !take(to_graph_normal_form(result))) break;
  }
  return result;
}

}  // namespace headrace::passes
