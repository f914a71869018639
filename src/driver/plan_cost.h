// The cost of a placement that costs did not decide.
#pragma once

#include "driver/placing.h"

namespace headrace::driver {

// Returns the seconds that the calls of `placing` and their borders take where its decider puts them. `plan` is the
// plan of least cost, whose factors of whole plans count here, too.
double seconds_of(const Placing& placing, const partition::OpCosts& costs, const partition::PlanCost& plan);

// Returns what the placement of a module after the canonical passes costs by the file of costs that the options name,
// else by the estimates of its backends and of native code, with the bound and the other plans of placement by cost.
// UserError for a backend whose cost is not a number of seconds, and for a plan of measured costs without their file.
partition::PlanCost cost_of(const IRModule& canonical, const Placing& placing, const CompileOptions& options);

}  // namespace headrace::driver
