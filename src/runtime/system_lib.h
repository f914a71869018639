// Functions that are part of the program: what <headrace/system_lib.h> registers, as a module.
#pragma once

#include <string>

#include "runtime/module.h"

namespace headrace::runtime {

// A module whose function `name` is the registered one named `prefix` + `name`, then or later. It cannot be saved.
Module system_lib(const std::string& prefix = "");

}  // namespace headrace::runtime
