// A module that was compiled into memory: its programs, and its code for who wants to keep it.
#pragma once

#include "driver/compile.h"
#include "runtime/module.h"

namespace headrace::driver {

// Functions and imports as load::make_artifact_module; where the target's CPU is not this machine's, its functions are
// UserErrors that say what is missing. Saved with all that it imports by then:
//   SaveToFile(path, format)  "so", "o": what compile_to_file would write; "ll":
//                             LLVM text of the kernels, "s" or "asm": their assembly, "c": their C. Empty: as the path
//                             ends, and so for a name without an ending.
//   GetSource(format)         "ll" (or empty), "s", "asm", "c"
//   SaveToBinary()            the bytes of the artifact, for the loader "graph_executor_factory"
// UserError: another format (the message lists these), an import that cannot be saved, a file that cannot be written.
runtime::Module build_module(const Model& model, const CompileOptions& options = {});

// A relocatable object of write_module, linked here and opened. UserError when a byte of it is not as it was written,
// or it is none of ours.
runtime::Module load_object(const std::string& path);

}  // namespace headrace::driver
