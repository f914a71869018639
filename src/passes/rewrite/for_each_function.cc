#include "passes/rewrite/for_each_function.h"

#include "relay/function_attrs.h"
#include "relay/leaves.h"

namespace headrace::passes {

IRModule rewrite_bodies(const IRModule& module, const std::function<Expr(const Expr&)>& rewrite) {
  IRModule result;
  for (const auto& [var, function] : module->functions()) {
    const auto* relay_function = function.as<relay::FunctionNode>();
    if (relay_function == nullptr || relay::is_left_alone(*relay_function)) continue;
    const Expr body = rewrite(relay_function->body);
    if (body == relay_function->body) continue;
    if (!result) result = snapshot(module);
    result->add_function(var,
                         copy_with(*relay_function,
                                   [&](relay::FunctionNode& copy) {
                                     copy.body = body;
                                     if (copy.ret_type && relay::has_unknown_dim(copy.ret_type)) copy.ret_type = {};
                                   }),
                         true);
  }
  return result ? result : module;
}

}  // namespace headrace::passes
