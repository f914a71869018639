// An open artifact as a runtime::Module: what `lib["default"](dev)` works on.
#pragma once

#include "load/artifact.h"

namespace headrace::load {

// Its functions are the artifact's programs: f(device) or f(device, threads) -> graph executor module. UserError when
// the device is not a CPU or the program cannot run here. The external modules are its imports.
runtime::Module make_artifact_module(std::shared_ptr<const Artifact> artifact);

// Opens a file; UserError with the refusal's message.
runtime::Module load_artifact_module(const std::string& path);

}  // namespace headrace::load
