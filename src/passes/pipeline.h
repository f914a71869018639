// The ordered lists of relay passes.
#pragma once

#include "pass/pass.h"

namespace headrace::passes {

// What every model goes through first, whatever backend runs it.
std::vector<pass::Pass> canonical();

// Passes of no list, which run where they are named. One that is of the list above too, under the same name, is here as
// it runs where it is named: it does more than in a build.
std::vector<pass::Pass> by_name();

// What the native parts of a program go through after it, before lowering.
std::vector<pass::Pass> native();

}  // namespace headrace::passes
