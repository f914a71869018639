// Options that mean nothing are refused before the work, whoever gives them: a program, Python, C++.
#pragma once

#include "driver/compile.h"

namespace headrace::driver {

// UserError that names the option: a number outside its range, a pass that is not known or that cannot be left out.
void check_options(const CompileOptions& options);

}  // namespace headrace::driver
