// Saves external modules for an artifact: a row of the manifest and the bytes of a section for each module.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "artifact/manifest.h"
#include "runtime/module.h"

namespace headrace::driver {

struct SavedModules {
  std::vector<artifact::ExternalModule> rows;
  std::vector<std::string> blobs;  // the bytes of each row
  // The constants of each row, which its field `constants` does not list yet: they are to become weights.
  std::vector<std::vector<NDArray>> constants;
  std::vector<int32_t> roots;  // the row of each root
};

// Saves `roots`, which are given in the order in which functions are looked up in them, and all modules that they
// import (except those contained in the bytes of their importer). Each module is saved once, importers before their
// imports, in numbered sections. After loading the rows (load/artifact.h), each function is found in the same module as
// before. Throws UserError for a null module, a kind without a name, a module that cannot be saved (the message names
// its kind), and a root that a later module imports too, because after loading the functions of that later module would
// be found first.
SavedModules save_modules(std::span<const runtime::Module> roots);

}  // namespace headrace::driver
