// Topological orders of a split's units. A plan is found by cutting an order, so that orders which keep few bytes alive
// give good plans; which one does depends on the graph.
#pragma once

#include "plan/pipeline/split_graph.h"

namespace headrace::plan {

// Returns the topological order that takes, of the units that could come next, the one with the least key; of equal
// keys the lowest number. O((units + tensors) log units).
std::vector<int32_t> order_by_key(const SplitGraph& graph, std::span<const int64_t> key);

// Returns five orders: by number; by depth from the inputs (early first); by depth from the outputs (late as possible);
// depth first, a consumer right after its last producer; and of units that could come next the one that makes the
// fewest bytes beyond those that it reads.
std::vector<std::vector<int32_t>> five_orders(const SplitGraph& graph);

// Returns the groups of units between cuts of an order, at most `num_groups` of about equal compute time. Each cut
// lies, of the places near an equal division, where the fewest bytes are alive. The groups' numbers ascend in the
// order.
std::vector<int32_t> group_at_least_live_cuts(const SplitGraph& graph, std::span<const int32_t> order,
                                              int32_t num_groups);

}  // namespace headrace::plan
