// The search for the plan of least cost (by_cost.h). Instances of patterns are labels of the problem, so that all steps
// choose them like backends.
//
// The label problem counts the borders between labels. The regions of labels may have more: where a path
// leaves some calls of one label and comes back, they are several regions, and each of them takes its values itself.
// So the label problem gives a lower bound of each plan, and its best labels need not be the best plan.
//
//   1. The labels of least cost. Where their regions have no further borders, they are the best plan.
//   2. Best first, branch and bound over sets of labels: the labels of least cost in a set are priced with their
//      regions, and the set without them is divided by the first call that has another label (E. L. Lawler, 1972,
//      "A procedure for computing the K best solutions to discrete optimization problems"). A set whose bound is not
//      below the cost of a known plan is dropped; when none is left, the known plan is the best one.
//   3. Where that takes too much work, rounds that add the borders of the regions to the label problem, and then moves
//      of whole regions to other labels, and of single instances. A move is taken only if the plan costs less, with its
//      regions.
#pragma once

#include "partition/placement/cost_problem.h"

namespace headrace::partition {

struct SearchLimits {
  // Step 2 solves so many label problems as take together this number of operations: those of the eliminations
  // (graph/labels.h), and kNodeOperations for each node of each problem. There are more of them where at most
  // `small_plans` plans exist.
  int64_t small_plans = int64_t{1} << 16;
  int64_t operations = int64_t{1} << 26;
  int64_t small_operations = int64_t{1} << 30;
  // Step 3 prices as many plans for its moves as have this number of nodes together, and at least so many.
  int64_t moved_nodes = int64_t{1} << 17;
  int64_t least_moves = 4;
};
inline constexpr int64_t kNodeOperations = 1000;

struct FoundPlan {
  std::vector<int32_t> labels = {};  // by node of the body
  int64_t cost = 0;                  // with all borders of its regions
  int64_t lower_bound = 0;           // no plan costs less; equal to `cost` where the search ended
};

// Returns the plan of least cost, or one of low cost where that takes too much work. A plan that costs `known` is there
// already: the search ends when nothing below that is left. Adds borders to the label problem. Deterministic; no
// recursion; near-linear for many nodes.
FoundPlan find_plan(CostProblem& problem, int64_t known, const SearchLimits& limits = {});

}  // namespace headrace::partition
