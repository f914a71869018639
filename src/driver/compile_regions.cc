#include "driver/compile_regions.h"

#include <algorithm>

#include "object/function.h"
#include "relay/function_attrs.h"

namespace headrace::driver {

namespace {

relay::Function with_symbol(const partition::Region& region) {
  if (relay::symbol_of(*region.function)) return region.function;
  Map<std::string, Value> attrs = region.function->attrs;
  attrs.set(relay::kGlobalSymbol, Value(region.name));
  return copy_with(*region.function, [&](relay::FunctionNode& copy) { copy.attrs = attrs; });
}

runtime::Module compile_region(const PackedFunc& compiler, const partition::Region& region) {
  const Value module = compiler(with_symbol(region));
  const bool is_module = !module.is_none() && module.is<runtime::Module>();
  if (!is_module)
    throw_at(
        region.function->span, "compile",
        fmt::format("the function {}{} returned no module for the region '{}'; it must return a runtime::Module that "
                    "has a function of that name",
                    kRegionCompilerPrefix, region.backend, region.name));
  return module.as<runtime::Module>();
}

void check_found(const partition::Region& region, std::span<const runtime::Module> modules) {
  const auto has_it = [&](const runtime::Module& module) {
    return module && static_cast<bool>(module.GetFunction(region.name, true));
  };
  if (std::any_of(modules.begin(), modules.end(), has_it) || find_global(region.name)) return;
  throw_at(
      region.function->span, "compile",
      fmt::format("the function '{0}' is for the compiler '{1}', and nothing here compiles it: register the function "
                  "{2}{1}, or give the model a module that has the function '{0}'",
                  region.name, region.backend, kRegionCompilerPrefix));
}

}  // namespace

std::vector<runtime::Module> compile_regions(std::span<const partition::Region> regions,
                                             std::span<const runtime::Module> modules) {
  std::vector<runtime::Module> compiled;
  for (const partition::Region& region : regions) {
    if (const PackedFunc compiler = find_global(kRegionCompilerPrefix + region.backend)) {
      compiled.push_back(compile_region(compiler, region));
    } else {
      check_found(region, modules);
    }
  }
  return compiled;
}

}  // namespace headrace::driver
