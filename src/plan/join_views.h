// JoinViews: the steps that compute the parts of a concatenation write them into its result's memory, and the
// concatenation goes:
//
//   a: x -> s0; b: x -> s1; concatenate: (s0, s1) -> s2
//   ->
//   a: x -> s2[0 ..]; b: x -> s2[n ..]
//
// A part must be a storage of its own that one step writes whole, and that occurs once in one concatenation. Where
// every dimension before the axis is 1, the parts lie one after another, and other steps that read a part read the same
// bytes in their new place. Otherwise (a batch of two images) a part has gaps: its view gets strides, and the function
// that computes it becomes one that writes with these strides (relay::kResultStrides). That needs a part that nothing
// but the concatenation reads, runs of at least 32 bytes, and a kernel from compute rules with one result. Runs before
// plan_memory. Linear in the program's size.
#pragma once

#include "plan/group_names.h"
#include "plan/program.h"

namespace headrace::plan {

// Adds the functions that write with strides to `groups`.
void join_views(Program& program, GroupTable& groups);

}  // namespace headrace::plan
