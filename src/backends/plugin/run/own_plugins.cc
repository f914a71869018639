#include "backends/plugin/run/own_plugins.h"

#include "backends/plugin/run/plugin_module.h"
#include "base/error.h"
#include "base/library_folder.h"
#include "runtime/module.h"

namespace headrace::backends::plugin {

PluginPtr open_own_plugin(const std::string& name) {
  try {
    return open_plugin(fmt::format("{}/libheadrace_{}.so", library_folder(), name));
  } catch (const MissingError& error) {
    throw MissingError(fmt::format("the backend '{}' is not installed whole: {}", name, error.message()));
  }
}

void register_own_loader(const std::string& name) {
  runtime::register_apart_loader(module_kind(name), [name](const runtime::SavedModule& saved) {
    return load_plugin_module(open_own_plugin(name), saved);
  });
}

}  // namespace headrace::backends::plugin
