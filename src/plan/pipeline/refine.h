// Moves single units between the stages of a plan.
#pragma once

#include "plan/pipeline/assignment.h"

namespace headrace::plan {

// Moves units to other stages where their producers and consumers allow it, as long as that lowers the greatest period
// of the stages that a move changes, or keeps it and lowers the sum of their squares. Stops after `max_passes` over all
// units. The period of the plan, which is set first, never rises; its stages keep their devices and at least one unit
// each.
void refine(const SplitGraph& graph, Assignment& assignment, int32_t max_passes);

}  // namespace headrace::plan
