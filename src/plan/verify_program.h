// The rules that a program keeps.
#pragma once

#include <string>
#include <vector>

#include "plan/program.h"

namespace headrace::plan {

// Returns a sentence for each breach of a rule, with the step or view that breaks it; none for a good program:
//   1. a view lies within its base, at a multiple of its element's size;
//   2. a step's views have the types of its function's parameters and results; a copy's two have one dtype and shape,
//      and are dense;
//   3. no step writes an input or a constant;
//   4. what a step writes overlaps nothing else that the step reads or writes;
//   5. a step reads of a storage or output only bytes that an earlier step wrote, and every output is written whole;
//   6. storages that are in use at the same time do not overlap in an arena.
// Linear in the number of views that steps use (of the runs of neighbouring elements in a view with strides), times the
// logarithm of the storages in use at once.
std::vector<std::string> find_breaches(const Program& program);

}  // namespace headrace::plan
