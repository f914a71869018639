// An open artifact as a runtime::Module: what `lib["default"](dev)` works on.
#pragma once

#include <string_view>

#include "load/artifact.h"

namespace headrace::load {

inline constexpr std::string_view kArtifactModuleKind = "graph_executor_factory";

// Its functions are the artifact's programs: f(device) or f(device, threads) -> graph executor module. UserError when
// the device is not a CPU or the program cannot run here. The external modules are its imports. SaveToBinary gives the
// bytes of the file; UserError when its weights lie beside it, or when it imports other modules by now.
runtime::Module make_artifact_module(std::shared_ptr<const Artifact> artifact);

// Opens a file; UserError with the refusal's message.
runtime::Module load_artifact_module(const std::string& path);

// Loads an artifact from the bytes of its file, which must contain all weights.
runtime::Module load_artifact_binary(const std::string& bytes);

}  // namespace headrace::load
