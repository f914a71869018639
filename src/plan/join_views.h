// JoinViews: a concatenation whose parts lie one after another in its result costs nothing. The steps that compute the
// parts write them into the result's memory, and the concatenation goes:
//
//   a: x -> s0; b: x -> s1; concatenate: (s0, s1) -> s2
//   ->
//   a: x -> s2[0 ..]; b: x -> s2[n ..]
//
// This holds where every dimension before the axis is 1. A part must be a storage of its own that one step writes
// whole, and that occurs once in one concatenation; steps that read it read the same bytes in their new place. Runs
// before plan_memory. Linear in the program's size.
#pragma once

#include "plan/program.h"

namespace headrace::plan {

void join_views(Program& program);

}  // namespace headrace::plan
