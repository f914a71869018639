// Checks the options of a compile before it starts, for the command line, Python and C++ alike.
#pragma once

#include "driver/compile.h"

namespace headrace::driver {

// Throws UserError, which names the option, for a number out of range, an unknown pass, a disabled pass that a compile
// cannot do without, and placement by cost without backends.
void check_options(const CompileOptions& options);
// Checks the options that say where ops are placed. Throws UserError for two that contradict each other.
void check_placement(const CompileOptions& options);

}  // namespace headrace::driver
