// Stages that run together for each element of their outer axes.
//
//   windows[c, y, x] = pad(data)[c, y, x]              for c (by threads):
//   out[c, p, q] = sum of windows[c, p + r, q + s]        windows[y, x] = ...       (in the worker's own memory)
//                                                         out[c, p, q] = ...
//
// What one stage hands to the next stays in the cache, and threads meet once.
#pragma once

#include <unordered_set>

#include "lower/stage_loops.h"
#include "lower/stage_reads.h"

namespace headrace::lower {

// Stages begin .. end - 1 of a compute with `depth` outer axes in common; one stage and depth 0 where there is no more.
struct StageGroup {
  size_t begin = 0, end = 0, depth = 0;
  std::vector<Buffer> local;  // what only these stages touch: a part of it for each element of the outer axes
};

// Where the stages of a compute touch buffers.
class StageUses {
 public:
  explicit StageUses(const tir::Compute& compute);
  const StageReads& reads() const { return reads_; }
  // Whether no stage but begin .. end - 1 reads or writes `buffer`, and no output is it.
  bool stays_within(const Buffer& buffer, size_t begin, size_t end) const;

 private:
  StageReads reads_;
  std::unordered_map<const BufferNode*, std::pair<size_t, size_t>> writers_;  // the first and the last
  std::unordered_set<const BufferNode*> outputs_;
};

// The longest group that begins there. The outer axes have as many elements as threads want parts, what is inside still
// fills vectors, and no operand of a combination is shared between elements of the outer axes (the data of a
// convolution is, between its output channels). Linear in what the stages of the group read.
StageGroup find_group(const tir::Compute& compute, const StageUses& uses, size_t begin);

// Its loops. They allocate what is local.
tir::Stmt group_loops(const tir::Compute& compute, const StageGroup& group, FlatBuffers& buffers,
                      const ScheduleOptions& options);

}  // namespace headrace::lower
