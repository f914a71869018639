#include "relay/infer/result_types.h"

#include "relay/expr.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

// Returns `after` with the type that `before` gives, where it has none.
Expr annotated(const Expr& before, const Expr& after) {
  const auto* function = after.as<FunctionNode>();
  if (function == nullptr || (function->ret_type && !function->ret_type.is<IncompleteTypeNode>())) return after;
  const auto* type = before->has_checked_type() ? before->checked_type().as<FuncTypeNode>() : nullptr;
  if (type == nullptr) return after;
  return copy_with(*function, [&](FunctionNode& copy) { copy.ret_type = type->ret_type; });
}

}  // namespace

IRModule with_result_types(const IRModule& module) {
  IRModule result;
  for (const auto& [var, function] : module->functions()) {
    if (!function.is<FunctionNode>()) continue;
    const Expr changed = rewrite_post_order(function, &annotated);
    if (changed == function) continue;
    if (!result) result = snapshot(module);
    result->add_function(var, changed.cast<FunctionNode>(), true);
  }
  return result ? result : module;
}

}  // namespace headrace::relay
