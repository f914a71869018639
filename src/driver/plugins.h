// Backends in shared libraries.
#pragma once

#include <memory>
#include <string>

#include "partition/backend.h"

namespace headrace::driver {

// Opens a shared library that answers headrace/backend_abi.h and makes its backend known to this process, for compiles
// and for the artifacts that it opens. Returns its name. A library that registers code generators and loaders itself,
// in C++ (object/porting.h), has done so when it is open: then the name is empty. A library that was loaded before
// changes nothing. UserError for the name of another backend, also of one that Python would make known: the library's
// backend is not known then, and the other one stays as it is. Throws as backends::plugin::open_plugin, make_backend
// and partition::register_backend; UserError for a library of the C++ headers of another version.
std::string load_plugin(const std::string& path);

// Makes a backend that opens the plugin of Headrace named `name` when it is first asked something.
std::shared_ptr<const partition::Backend> make_own_plugin_backend(const std::string& name);

}  // namespace headrace::driver
