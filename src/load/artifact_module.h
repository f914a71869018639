// Wraps an open artifact as a runtime::Module, the object on which `lib["default"](dev)` is called.
#pragma once

#include <string_view>

#include "load/artifact.h"

namespace headrace::load {

inline constexpr std::string_view kArtifactModuleKind = "graph_executor_factory";

// The function of an artifact's module that describes the program "default" (load/graph_nodes.h), unless a program of
// this name is in the artifact.
inline constexpr std::string_view kGraphFunction = "get_graph_nodes";

// Returns that function. Returns an empty function if the manifest has no program "default".
PackedFunc make_graph_function(std::shared_ptr<const artifact::Manifest> manifest);

// Makes a module whose functions are the artifact's programs: f(device) or f(device, threads) -> graph executor module.
// They throw UserError if the device is not a CPU or if the program cannot run on this machine. The external modules
// are its imports. SaveToBinary returns the bytes of the file, and SaveToFile writes them as .so; they throw UserError
// if the weights are in a side file, if other modules were imported since, and for other formats.
runtime::Module make_artifact_module(std::shared_ptr<const Artifact> artifact);

// Opens the artifact in a file. Throws refusals as UserError.
runtime::Module load_artifact_module(const std::string& path);

// Loads an artifact from the bytes of its file, which must contain all weights.
runtime::Module load_artifact_binary(const std::string& bytes);

}  // namespace headrace::load
