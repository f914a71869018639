// The best plan whose stages end at the downsets of one lattice.
//
// First dynamic programming: bound[state][downset] is the least period with which the units of the downset can be
// computed by the devices of the state, by the costs of segment_walk.h, which no plan undercuts. Then a search from the
// last stage to the first: there it is known which stages read a tensor, so that transfers out are exact, and the
// bounds say where no better plan begins. Without tensors that several stages read and without unlike links the first
// way that the search takes is the best.
#pragma once

#include "plan/pipeline/assignment.h"
#include "plan/pipeline/segment_walk.h"

namespace headrace::plan {

struct SearchResult {
  // Set when a plan with a shorter period than asked for was found.
  std::optional<Assignment> found;
  // No plan over the lattice and the states has a shorter period; the shortest period known when the search was not cut
  // short.
  int64_t lower_bound_ns = 0;
};

// Looks for a plan with a period below `limit_ns`, at most `max_steps` segments long after the dynamic programming.
SearchResult search_stages(SegmentWalk& walk, const DeviceStates& states, int64_t limit_ns, int64_t max_steps);

}  // namespace headrace::plan
