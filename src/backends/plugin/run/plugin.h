// Plugins: backends from shared libraries that answer headrace/backend_abi.h. They are opened when a user names their
// path, and never closed.
#pragma once

#include <headrace/backend_abi.h>

#include <memory>
#include <string>

namespace headrace::backends::plugin {

struct Plugin {
  std::string name, version;
  std::string path;
  hr_backend table{};  // fields that the library did not fill in are null
};
using PluginPtr = std::shared_ptr<const Plugin>;

// Opens a library, which registers what it registers as it is loaded, and never closes it. MissingError: the library,
// or one that it needs, is not there. UserError: the system cannot load it.
void* open_library(const std::string& path);

// Opens a library and calls its entry; a file that is open already gives the same plugin. Afterwards artifacts find the
// modules of its regions. MissingError: the library, or one that it needs, is not there, or its entry says that it
// cannot work here. UserError: it is not a backend, of another version of the interface, without a name, a version or
// one of the functions that it must have, or there is another plugin of its name.
PluginPtr open_plugin(const std::string& path);

// Gives plugins the means to read graphs, which programs that only run models do not have. Those that were opened
// before have it, too.
void set_graph_api(const hr_graph_api* api);

// Returns the kind of the modules of a plugin's regions: "backend.NAME".
std::string module_kind(const std::string& plugin);

}  // namespace headrace::backends::plugin
