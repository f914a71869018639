#include "relay/infer/result_types.h"

#include "relay/expr.h"
#include "relay/visit.h"

namespace headrace::relay {

namespace {

bool is_open(const Expr& expr) {
  const auto* function = expr.as<FunctionNode>();
  return function != nullptr && (!function->ret_type || function->ret_type.is<IncompleteTypeNode>());
}

bool has_open_functions(const Expr& root) {
  bool found = false;
  post_order(root, [&](const Expr& expr) { found = found || is_open(expr); });
  return found;
}

// Returns `after` with the type that `before` gives, where it has none.
Expr annotated(const Expr& before, const Expr& after) {
  const auto* type = is_open(after) && before->has_checked_type() ? before->checked_type().as<FuncTypeNode>() : nullptr;
  if (type == nullptr) return after;
  return copy_with(*after.as<FunctionNode>(), [&](FunctionNode& copy) { copy.ret_type = type->ret_type; });
}

}  // namespace

IRModule with_result_types(const IRModule& module) {
  IRModule result;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr) continue;
    const bool is_nested = has_open_functions(node->body);
    const Expr changed = is_nested ? rewrite_post_order(function, &annotated) : annotated(function, function);
    if (changed == function) continue;
    if (!result) result = snapshot(module);
    result->add_function(var, changed.cast<FunctionNode>(), true);
  }
  return result ? result : module;
}

}  // namespace headrace::relay
