// The last step where another linker made the shared object.
#pragma once

#include <string>

namespace headrace::driver {

// Copies the shared object `library`, which somebody linked from an object of write_module (driver/link_artifact.h), to
// `path`, with the trailer that the loader asks for; `path` may be `library`. It appears whole or not at all. One that
// is sealed already stays as it is. UserError: a file that cannot be read or written, or that is no artifact then: no
// shared object for this machine, without the manifest or the weights.
void seal_library(const std::string& library, const std::string& path);

}  // namespace headrace::driver
