// The text of `headrace explain`.
#pragma once

#include "driver/explain.h"

namespace headrace::tools {

// Prints where each op would run, why there and why not on the other backends of the list, what would change that, the
// regions with what enters and leaves them, and the cost of the plan.
void print_explanation(const driver::Explanation& explained);

}  // namespace headrace::tools
