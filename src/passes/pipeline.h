// The ordered lists of relay passes.
#pragma once

#include "cost/machine.h"
#include "pass/pass.h"

namespace headrace::passes {

// Returns the passes that every model goes through first, whatever backend runs it. They split no op
// that Relay names into others, but for batch_norm and the laws of SimplifyExpr, so that a backend finds what it looks
// for.
std::vector<pass::Pass> canonical();

// Passes of no list, which run where they are named. One that is of the list above too, under the same name, is here as
// it runs where it is named: it does more than in a build.
std::vector<pass::Pass> by_name();

// Returns the passes over the native parts of a program that will run on `machine`, after placement and before
// lowering. FoldConstant is in both lists.
std::vector<pass::Pass> native(const cost::Machine& machine);

}  // namespace headrace::passes
