#include "backends/plugin/run/own_plugins.h"

#include <unistd.h>

#include "backends/plugin/run/plugin_module.h"
#include "base/error.h"
#include "base/library_folder.h"
#include "runtime/module.h"

namespace headrace::backends::plugin {

PluginPtr open_own_plugin(const std::string& name) {
  const std::string path = fmt::format("{}/libheadrace_{}.so", library_folder(), name);
  if (::access(path.c_str(), F_OK) != 0)
    throw MissingError(fmt::format(
        "the backend '{0}' is not installed: there is no '{1}'; of the wheels, headrace-{0} has it", name, path));
  try {
    return open_plugin(path);
  } catch (const MissingError& error) {
    throw MissingError(fmt::format("the backend '{}' is not installed whole: {}", name, error.message()));
  }
}

void register_own_loader(const std::string& name) {
  runtime::register_apart_loader(module_kind(name), [name](const runtime::SavedModule& saved) {
    return load_plugin_module(open_own_plugin(name), saved);
  });
  runtime::register_version_check(
      module_kind(name), [name](const std::string& recorded) { check_blob_version(*open_own_plugin(name), recorded); });
}

}  // namespace headrace::backends::plugin
