// PlanScales: factors by which the costs of calls add up to the measured times of whole plans. Measured costs of single
// calls do not: each backend's sum is off by a share of its own, since caches, layouts and calls of programs differ.
//
//   native code by its calls 12 ms, measured 9 ms           ->   native: 0.75
//   chip alone: 4 ms of native calls and 5 ms of its own,
//   measured 7 ms; the native calls are 3 ms now            ->   chip: (7 - 3) / 5 = 0.8
//
// Scaled, the costs of native code and of each backend alone are what was measured, and plans that mix places are
// compared with them by costs that err less.
#pragma once

#include "partition/placement/cost_problem.h"
#include "partition/plan_cost.h"

namespace headrace::partition {

// Factors outside of these bounds say more about the table than about the calls.
inline constexpr double kLeastScale = 0.5;
inline constexpr double kMostScale = 2;

// Returns the factors of native code and of each backend, by label: `alone` has for each backend the labels of the plan
// in which it takes all that it can. Nothing where the costs do not have the whole plans (OpCosts::has_whole_plans). A
// label whose calls cost nothing keeps its costs.
std::vector<PlanScale> fit_scales(const CostProblem& problem, const std::vector<std::vector<int32_t>>& alone,
                                  const OpCosts& costs);

}  // namespace headrace::partition
