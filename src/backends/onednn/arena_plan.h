// Places for tensors in one arena: what is not needed at the same time may lie in the same bytes.
#pragma once

#include <cstddef>
#include <vector>

namespace headrace_onednn {

// Memory that is needed from the step `first` to the step `last`, both included.
struct Lifetime {
  size_t first = 0, last = 0, nbytes = 0;
  size_t offset = 0;  // its place, which plan_arena sets
};

struct ArenaPlan {
  size_t nbytes = 0;        // that the arena needs
  size_t num_examined = 0;  // gaps that were looked at, a measure of the time
};

// Gives each lifetime, in the order of their first steps, the lowest place that is free from then on. Places are
// multiples of `alignment`. Takes time in proportion to the lifetimes and the gaps between them, of which there are
// few.
ArenaPlan plan_arena(std::vector<Lifetime>& lifetimes, size_t alignment);

}  // namespace headrace_onednn
