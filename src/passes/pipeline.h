// The ordered lists of relay passes.
#pragma once

#include "pass/pass.h"

namespace headrace::passes {

// What every model goes through first, whatever backend runs it.
std::vector<pass::Pass> canonical();

}  // namespace headrace::passes
