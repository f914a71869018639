// The modules of plugins: a blob that a plugin made, and its regions as functions and kernels.
#pragma once

#include <string>
#include <vector>

#include "backends/plugin/run/plugin.h"
#include "runtime/module.h"

namespace headrace::backends::plugin {

// Loads a saved plugin module: its bytes, whose constants are passed separately or embedded. Its functions take the
// tensors of a region's inputs and outputs, DLTensor* or NDArray, contiguous and on the CPU, on one thread, and return
// the last argument if it is an NDArray. Throws UserError with the plugin's message when the plugin rejects the blob.
runtime::Module load_plugin_module(const PluginPtr& plugin, const runtime::SavedModule& saved);

// Makes a module from a newly compiled blob and its separate constants; `regions` are the names of its functions. Loads
// the blob when a function or kernel is first requested, because the machine that compiles may lack the plugin's
// device.
runtime::Module make_plugin_module(const PluginPtr& plugin, runtime::SavedModule blob,
                                   std::vector<std::string> regions);

// Registers the loader of these modules, runtime.module.loadbinary_backend.NAME.
void register_loader(const PluginPtr& plugin);

}  // namespace headrace::backends::plugin
