// The ordered lists of relay passes.
#pragma once

#include "pass/pass.h"

namespace headrace::passes {

// What every model goes through first, whatever backend runs it.
std::vector<pass::Pass> canonical();

// Passes of no list, which run where they are named.
std::vector<pass::Pass> by_name();

// What the native parts of a program go through after it, before lowering.
std::vector<pass::Pass> native();

}  // namespace headrace::passes
