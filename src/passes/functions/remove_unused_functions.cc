#include "passes/functions/remove_unused_functions.h"

#include <unordered_set>

#include "relay/visit.h"

namespace headrace::passes {

using relay::FunctionNode;

namespace {

// The names of the functions that must stay, and of those they refer to.
std::unordered_set<std::string> reachable(const IRModule& module) {
  std::unordered_set<std::string> names;
  std::vector<BaseFunc> pending;
  const auto reach = [&](const std::string& name) {
    const GlobalVar var = module->find_global_var(name);
    if (var && names.insert(name).second) pending.push_back(module->functions().at(var));
  };
  for (const auto& [var, function] : module->functions()) {
    const bool is_root = var->name_hint == "main" || function->attrs.contains("global_symbol");
    if (is_root || !function.is<FunctionNode>()) reach(var->name_hint);
  }
  while (!pending.empty()) {
    const BaseFunc function = pending.back();
    pending.pop_back();
    if (!function.is<FunctionNode>()) continue;
    relay::post_order(function, [&](const Expr& e) {
      if (const auto* global = e.as<GlobalVarNode>()) reach(global->name_hint);
    });
  }
  return names;
}

}  // namespace

IRModule remove_unused_functions(const IRModule& module) {
  if (!module->find_global_var("main")) return module;
  const std::unordered_set<std::string> kept = reachable(module);
  if (kept.size() == module->functions().size()) return module;
  const IRModule result = snapshot(module);
  result->set_functions({});
  for (const auto& [var, function] : module->functions()) {
    if (kept.contains(var->name_hint)) result->add_function(var, function);
  }
  return result;
}

}  // namespace headrace::passes
