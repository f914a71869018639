// A module that was compiled into memory: its programs, and its file for who wants to keep it.
#pragma once

#include "driver/compile.h"
#include "runtime/module.h"

namespace headrace::driver {

// Functions as load::make_artifact_module; SaveToFile(path, "so") writes the artifact, whole or not at all.
runtime::Module build_module(const Model& model, const CompileOptions& options = {});

}  // namespace headrace::driver
