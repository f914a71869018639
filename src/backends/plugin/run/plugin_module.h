// The modules of plugins: a blob that a plugin made, and its regions as functions and kernels.
#pragma once

#include <string>
#include <vector>

#include "backends/plugin/run/plugin.h"
#include "runtime/module.h"

namespace headrace::backends::plugin {

// Loads what such a module was saved as: bytes, with constants beside them or within. Its functions take the tensors of
// a region's inputs and outputs, DLTensor* or NDArray, contiguous and on the CPU, on one thread. UserError with the
// plugin's sentence for a blob that it does not load.
runtime::Module load_plugin_module(const PluginPtr& plugin, const runtime::SavedModule& saved);

// Makes the module of a blob that was just compiled, and of the constants that it leaves out, with these regions. It is
// loaded when a function is asked for: the machine that compiles may not have what the plugin runs on.
runtime::Module make_plugin_module(const PluginPtr& plugin, runtime::SavedModule blob,
                                   std::vector<std::string> regions);

// Registers the loader of these modules, runtime.module.loadbinary_backend.NAME.
void register_loader(const PluginPtr& plugin);

}  // namespace headrace::backends::plugin
