// A module that was compiled into memory: its programs, and its file for who wants to keep it.
#pragma once

#include "driver/compile.h"
#include "runtime/module.h"

namespace headrace::driver {

// Functions and imports as load::make_artifact_module; SaveToFile(path, "so") writes what compile_to_file would.
runtime::Module build_module(const Model& model, const CompileOptions& options = {});

}  // namespace headrace::driver
