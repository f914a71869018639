#include "passes/rewrite/references.h"

#include "relay/visit.h"

namespace headrace::passes {

std::unordered_set<std::string> referenced_functions(const Expr& expr) {
  std::unordered_set<std::string> names;
  relay::post_order(expr, [&](const Expr& e) {
    if (const auto* global = e.as<GlobalVarNode>()) names.insert(global->name_hint);
  });
  return names;
}

std::unordered_set<std::string> referenced_functions(const IRModule& module) {
  std::unordered_set<std::string> names;
  for (const auto& [var, function] : module->functions()) {
    if (function.is<relay::FunctionNode>()) names.merge(referenced_functions(function));
  }
  return names;
}

}  // namespace headrace::passes
