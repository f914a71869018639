// Plugins: backends from shared libraries that implement headrace/backend_abi.h. They are opened when a user names
// their path, and stay open until the process ends.
#pragma once

#include <headrace/backend_abi.h>

#include <functional>
#include <memory>
#include <string>

namespace headrace::backends::plugin {

struct Plugin {
  std::string name, version;
  std::string path;
  hr_backend table{};  // fields that an older library does not know are null
};
using PluginPtr = std::shared_ptr<const Plugin>;

// Opens a library of any kind, such as one that registers a backend in its static initialisers, and never closes it;
// returns dlopen's handle. MissingError: the library, or one that it needs, is not there. UserError: the system cannot
// load it.
void* open_library(const std::string& path);

// Opens a library and calls its entry; a file that is open already gives the same plugin. From then on artifacts with
// regions for this backend can be loaded: its loader is registered under module_kind. MissingError: the library, or one
// that it needs, is not there, or its entry says that it cannot work here. UserError: it is not a backend, is of a
// version of the interface that is not read, lacks its name, its version or a function that it must have, or there is
// another plugin of its name. `check`, unless null, is called with a plugin that is new before anything is registered,
// and may refuse it by an exception.
PluginPtr open_plugin(const std::string& path, const std::function<void(const PluginPtr&)>& check = {});

// Throws UserError if a plugin is not of the recorded version, which compiled its modules, and does not accept what
// that version compiled. Libraries of minor versions before 4 accept all.
void check_blob_version(const Plugin& plugin, const std::string& recorded);

// Gives plugins the functions by which they read graphs, which the compiler has and programs that only run models do
// not. Plugins that are open already get them, too.
void set_graph_api(const hr_graph_api* api);

// Returns the kind of the modules of a plugin's regions: "backend.NAME".
std::string module_kind(const std::string& plugin);

}  // namespace headrace::backends::plugin
