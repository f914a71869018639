// Writes the loops of kernels as text files, for people and for headrace-opt.
#pragma once

#include <string>

#include "ir/module.h"

namespace headrace::driver {

// Writes each tir function of `loops` to the file `folder`/NAME`suffix`. Creates the folder if it does not exist.
// Throws UserError if a file cannot be written.
void dump_loops(const IRModule& loops, const std::string& folder, std::string_view suffix);

}  // namespace headrace::driver
