// The rules of a problem that concern one number, one node or one device.
#pragma once

#include "plan/pipeline/split.h"

namespace headrace::plan {

// Throws UserError, with the node or device as its place, for a number out of range, an unknown node, and a constant
// with inputs, outputs of several tensors aside, or in `colocated`.
void check_problem(const SplitProblem& problem);

// Returns a node as errors name it: its name, or its number when it has none.
std::string node_label(const SplitProblem& problem, int32_t node);

}  // namespace headrace::plan
