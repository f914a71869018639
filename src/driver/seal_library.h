// Turns a shared object that another linker made into an artifact.
#pragma once

#include <string>

namespace headrace::driver {

// Copies the shared object `library`, linked from an object of write_module (driver/link_artifact.h), to `path` and
// appends the trailer that the loader requires. `path` may be `library`. The file appears complete or not at all. A
// library that is already sealed is copied unchanged. Throws UserError for a file that cannot be read or written, and
// if the result would not be an artifact: not a shared object for this machine, or without the manifest or the weights.
void seal_library(const std::string& library, const std::string& path);

}  // namespace headrace::driver
