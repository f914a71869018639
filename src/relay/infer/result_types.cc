#include "relay/infer/result_types.h"

#include "relay/expr.h"

namespace headrace::relay {

IRModule with_result_types(const IRModule& module) {
  IRModule result;
  for (const auto& [var, function] : module->functions()) {
    const auto* node = function.as<FunctionNode>();
    if (node == nullptr || (node->ret_type && !node->ret_type.is<IncompleteTypeNode>())) continue;
    const Type type = node->checked_type().as<FuncTypeNode>()->ret_type;
    if (!result) result = snapshot(module);
    result->add_function(var, copy_with(*node, [&](FunctionNode& copy) { copy.ret_type = type; }), true);
  }
  return result ? result : module;
}

}  // namespace headrace::relay
