// Closes the gap between a plan and the lower bound where there are too many downsets to list.
#pragma once

#include "plan/pipeline/assignment.h"
#include "plan/pipeline/device_classes.h"

namespace headrace::plan {

// Raises the lower bound by proofs that no plan is shorter than some period, and replaces the plan by a shorter one
// where a proof finds it. Stops at a gap of kGoodGap, and when the options' steps are used up.
//
// One kind of proof: units that no shorter plan separates are merged (inseparable.h). Then either no plan is left, or
// few enough downsets to search them all (stage_search.h), or what comes before and after the largest unit is looked at
// (around_largest.h). The other kind is branch and bound over the stages of units (branch_and_bound.h): used instead
// where transfers overlap with compute on some device, and after the first kind elsewhere.
inline constexpr double kGoodGap = 0.01;
void tighten(const SplitGraph& graph, const SplitOptions& options, const std::vector<DeviceStates>& states,
             Assignment& best, int64_t& lower_bound_ns);

}  // namespace headrace::plan
