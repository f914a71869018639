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
  register_global(
      fmt::format("{}{}", runtime::kLoadBinaryPrefix, module_kind(name)),
      make_packed([name](const Bytes& bytes) { return load_plugin_module(open_own_plugin(name), bytes.data); }), true);
}

}  // namespace headrace::backends::plugin
