#include "relay/regions.h"

#include "relay/function_attrs.h"

namespace headrace::relay {

Function region_of(const CallNode& call, const IRModule& module) {
  Function callee = call.op.cast<FunctionNode>();
  if (const auto* name = call.op.as<GlobalVarNode>()) callee = module->lookup(name->name_hint).cast<FunctionNode>();
  return callee && compiler_of(*callee) ? callee : Function();
}

std::string region_name(const CallNode& call, const FunctionNode& region) {
  if (const auto symbol = symbol_of(region)) return *symbol;
  if (const auto* global = call.op.as<GlobalVarNode>()) return global->name_hint;
  throw_at(
      region.span, "compile",
      fmt::format("a function for the compiler '{}' has no name; give it the attribute {}, or make it a function of "
                  "the module",
                  *compiler_of(region), kGlobalSymbol));
}

}  // namespace headrace::relay
