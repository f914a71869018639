// The transfers that a border between stages causes on both of its sides.
#pragma once

#include "plan/pipeline/lattice.h"

namespace headrace::plan {

struct BorderTimes {
  std::vector<int64_t> out_ns;  // by downset: the least time that its tensors for other units take the stages in it
  std::vector<int64_t> in_ns;   // by downset: the least time that these tensors take the stages after it
};

// Returns the times for all downsets of a lattice. O(downsets times the tensors of a unit).
BorderTimes border_times(const SplitGraph& graph, const Lattice& lattice);

}  // namespace headrace::plan
