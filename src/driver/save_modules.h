// External modules as an artifact keeps them: a row of the manifest and the bytes of a section for each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "runtime/module.h"

namespace headrace::driver {

struct SavedModules {
  std::vector<artifact::ExternalModule> rows;
  std::vector<std::string> blobs;  // by row: what SaveToBinary gave
};

// `roots`, in the order in which their functions are looked for, and all that they import (but for kinds whose own
// bytes hold that), each once: importers come before what they import, sections are numbered. Loading the rows
// (load/artifact.h) gives modules in which every function is found in the same module as here. UserError: a null
// module, a kind without a name, a module that cannot be saved (the message names its kind), and a root that a later
// module imports too: loaded, it would be asked after it.
SavedModules save_modules(std::span<const runtime::Module> roots);

}  // namespace headrace::driver
