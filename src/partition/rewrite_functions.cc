#include "partition/rewrite_functions.h"

#include "partition/regions.h"
#include "relay/function_attrs.h"

namespace headrace::partition {

IRModule rewrite_entered_functions(
    const IRModule& module,
    const std::function<Expr(const std::string& name, const relay::FunctionNode& function)>& rewrite) {
  IRModule result;
  for (const auto& [var, function] : module->functions()) {
    const auto* entered = function.as<relay::FunctionNode>();
    if (entered == nullptr || !relay::is_entered(function)) continue;
    const Expr body = rewrite(var->name_hint, *entered);
    if (body == entered->body) continue;
    if (!result) result = snapshot(module);
    const Expr changed = copy_with(*entered, [&](relay::FunctionNode& copy) { copy.body = body; });
    result->add_function(var, retyped(function, changed).cast<BaseFuncNode>(), true);
  }
  return result ? result : module;
}

}  // namespace headrace::partition
