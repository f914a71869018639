// Stages that run together for each element of their outer axes.
//
//   windows[c, y, x] = pad(data)[c, y, x]              for c (by threads):
//   out[c, p, q] = sum of windows[c, p + r, q + s]        windows[y, x] = ...       (in the worker's own memory)
//                                                         out[c, p, q] = ...
//
// The data that one stage passes to the next stays in the cache, and threads synchronise only once.
#pragma once

#include <unordered_set>

#include "cost/machine.h"
#include "lower/stages/stage_reads.h"

namespace headrace::lower {

// Stages begin .. end - 1 of a compute with `depth` outer axes in common; one stage and depth 0 where there is no more.
struct StageGroup {
  size_t begin = 0, end = 0, depth = 0;
  std::vector<Buffer> local;  // touched by these stages only: a part for each element of the outer axes
};

// Records where the stages of a compute form access buffers.
class StageUses {
 public:
  explicit StageUses(const tir::Compute& compute);
  const StageReads& reads() const { return reads_; }
  // Returns whether only stages begin .. end - 1 access `buffer`, and it is not an output.
  bool stays_within(const Buffer& buffer, size_t begin, size_t end) const;

 private:
  StageReads reads_;
  std::unordered_map<const BufferNode*, std::pair<size_t, size_t>> writers_;  // the first and the last
  std::unordered_set<const BufferNode*> outputs_;
};

// Returns the longest group that begins at that stage. Its outer axes have as many elements as threads want parts, its
// inner axes still fill vectors (by the thresholds of the machine), and the elements of the outer axes share no operand
// of a combination. (The output channels of a convolution share its data, so they are not such axes.) Linear in what
// the stages of the group read.
StageGroup find_group(const tir::Compute& compute, const StageUses& uses, size_t begin, const cost::Machine& machine);

}  // namespace headrace::lower
