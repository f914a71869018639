// Functions of the program that <headrace/system_lib.h> registers, as a module.
#pragma once

#include <string>

#include "runtime/module.h"

namespace headrace::runtime {

// Returns a module whose function `name` is the registered function `prefix` + `name`, whether registered before or
// after. It cannot be saved.
Module system_lib(const std::string& prefix = "");

}  // namespace headrace::runtime
