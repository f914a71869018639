// The plugins that belong to Headrace. They lie beside its libraries and are opened when they are first needed, because
// each brings a library of somebody else into the process.
#pragma once

#include <string>

#include "backends/plugin/run/plugin.h"

namespace headrace::backends::plugin {

// Opens the plugin libheadrace_NAME.so. Throws as open_plugin; the message names what to install.
PluginPtr open_own_plugin(const std::string& name);

// Registers a loader of the plugin's modules that opens the plugin.
void register_own_loader(const std::string& name);

}  // namespace headrace::backends::plugin
