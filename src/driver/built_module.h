// Compiles a model to a module in memory, which can be run and saved in every format.
#pragma once

#include "driver/compile.h"
#include "runtime/module.h"

namespace headrace::driver {

// Compiles the model. Has the functions and imports of load::make_artifact_module, and imports the C source of regions
// that backends wrote as C, for reading. If this machine's CPU cannot run the target's code, the functions that make
// executors throw a UserError that names the missing features. The module can be saved, together with all modules that
// it imports at that time:
//   SaveToFile(path, format)  "so" and "o" write the files of compile_to_file, "ll" the kernels as LLVM text, "s" or
//                             "asm" their assembly, "c" their C. With an empty format the extension of `path` decides;
//                             a name without an extension means "so".
//   GetSource(format)         returns the text of "ll" (the default), "s", "asm" or "c"
//   SaveToBinary()            returns the bytes of the artifact, for the loader "graph_executor_factory"
// These throw UserError for an unknown format (the message lists the formats), an import that cannot be saved, and a
// file that cannot be written.
runtime::Module build_module(const Model& model, const CompileOptions& options = {});

// Links a relocatable object that write_module wrote, and opens the result. Throws UserError if the object was changed
// since it was written, or if it does not come from write_module.
runtime::Module load_object(const std::string& path);

}  // namespace headrace::driver
