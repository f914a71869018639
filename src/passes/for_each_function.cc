#include "passes/for_each_function.h"

#include "passes/primitive.h"

namespace headrace::passes {

static bool is_left_alone(const relay::FunctionNode& function) {
  return is_primitive(function) || function.attrs.contains("Compiler") || function.attrs.contains("SkipOptimization");
}

IRModule rewrite_bodies(const IRModule& module, const std::function<Expr(const Expr&)>& rewrite) {
  IRModule result;
  for (const auto& [var, function] : module->functions) {
    const auto* relay_function = function.as<relay::FunctionNode>();
    if (relay_function == nullptr || is_left_alone(*relay_function)) continue;
    const Expr body = rewrite(relay_function->body);
    if (body == relay_function->body) continue;
    if (!result) result = make_object<IRModuleNode>(*module);
    result->add_function(var, copy_with(*relay_function, [&](relay::FunctionNode& copy) { copy.body = body; }), true);
  }
  return result ? result : module;
}

}  // namespace headrace::passes
