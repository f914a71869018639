// Which integers a program's inputs may hold where it picks elements by them.
#pragma once

#include "ir/module.h"

namespace headrace::tools {

// A parameter of `main` each: integers below this are indices within every axis that the program is known to pick from
// by them, directly or after integer arithmetic; kRandomLimit where there is none. `module` is typed. Linear in its
// size.
std::vector<int64_t> index_limits(const IRModule& module);

}  // namespace headrace::tools
