// The loops of kernels as text files, for people to read and for headrace-opt.
#pragma once

#include <string>

#include "ir/module.h"

namespace headrace::driver {

// Writes each function of `loops`, which are tir's, to `folder`/NAME`suffix`. The folder is made when it is not there.
// UserError when a file cannot be written.
void dump_loops(const IRModule& loops, const std::string& folder, std::string_view suffix);

}  // namespace headrace::driver
