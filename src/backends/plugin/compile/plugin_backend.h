// A plugin as a backend of the compiler.
#pragma once

#include <memory>

#include "backends/plugin/run/plugin.h"
#include "partition/backend.h"

namespace headrace::backends::plugin {

// Makes the backend, which asks the plugin about calls and patterns and has it compile regions. UserError for patterns
// that do not parse, or whose names do not begin with the plugin's name and a dot, and for a plugin that cannot
// compile.
std::shared_ptr<const partition::Backend> make_backend(const PluginPtr& plugin);

// Returns "that of the library 'x.so'": see partition::Backend::origin.
std::string origin_of(const Plugin& plugin);

}  // namespace headrace::backends::plugin
