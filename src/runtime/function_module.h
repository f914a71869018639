// A module of given functions, in any language.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "runtime/module.h"

namespace headrace::runtime {

// Makes a module of the kind `type_key` with these functions by name. `binary` is what SaveToBinary returns, for the
// loader "runtime.module.loadbinary_<type_key>"; without it the module cannot be saved. UserError: an empty kind, or
// one of kOwnKinds (runtime/own_kinds.h).
Module make_function_module(const std::string& type_key, std::map<std::string, PackedFunc> functions,
                            std::optional<std::string> binary);

}  // namespace headrace::runtime
