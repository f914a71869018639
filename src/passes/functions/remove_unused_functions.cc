#include "passes/functions/remove_unused_functions.h"

#include <unordered_set>

#include "passes/rewrite/references.h"

namespace headrace::passes {

using relay::FunctionNode;

namespace {

// Returns the names of the functions that must stay, and of those they refer to.
std::unordered_set<std::string> reachable(const IRModule& module, const std::vector<std::string>& entries) {
  std::unordered_set<std::string> names;
  std::vector<BaseFunc> pending;
  const auto reach = [&](const std::string& name) {
    const GlobalVar var = module->find_global_var(name);
    if (var && names.insert(name).second) pending.push_back(module->functions().at(var));
  };
  for (const std::string& entry : entries) reach(entry);
  for (const auto& [var, function] : module->functions()) {
    if (function->attrs.contains("global_symbol") || !function.is<FunctionNode>()) reach(var->name_hint);
  }
  while (!pending.empty()) {
    const BaseFunc function = pending.back();
    pending.pop_back();
    if (!function.is<FunctionNode>()) continue;
    for (const std::string& name : referenced_functions(function)) reach(name);
  }
  return names;
}

}  // namespace

std::vector<std::string> entry_functions(const pass::PassContext& context) {
  const auto entries = context.option<Array<std::string>>("relay.RemoveUnusedFunctions.entry_functions");
  return entries ? entries->to_vector() : std::vector<std::string>{"main"};
}

IRModule remove_unused_functions(const IRModule& module, const std::vector<std::string>& entries) {
  for (const std::string& entry : entries) {
    if (module->find_global_var(entry)) continue;
    if (entry == "main" && entries.size() == 1) return module;
    throw_user_error("RemoveUnusedFunctions: the module has no function @{} to enter", entry);
  }
  const std::unordered_set<std::string> kept = reachable(module, entries);
  if (kept.size() == module->functions().size()) return module;
  const IRModule result = snapshot(module);
  result->set_functions({});
  for (const auto& [var, function] : module->functions()) {
    if (kept.contains(var->name_hint)) result->add_function(var, function);
  }
  return result;
}

}  // namespace headrace::passes
