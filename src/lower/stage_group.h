// Stages that run together for each element of their outer axes.
//
//   windows[c, y, x] = pad(data)[c, y, x]              for c (by threads):
//   out[c, p, q] = sum of windows[c, p + r, q + s]        windows[y, x] = ...       (in the worker's own memory)
//                                                         out[c, p, q] = ...
//
// What one stage hands to the next stays in the cache, and threads meet once.
#pragma once

#include "lower/stage_loops.h"

namespace headrace::lower {

// Stages begin .. end - 1 of a compute with `depth` outer axes in common; one stage and depth 0 where there is no more.
struct StageGroup {
  size_t begin = 0, end = 0, depth = 0;
  std::vector<Buffer> local;  // what only these stages touch: a part of it for each element of the outer axes
};

// The longest group that begins there. The outer axes have as many elements as threads want parts, what is inside still
// fills vectors, and no operand of a combination is shared between elements of the outer axes (the data of a
// convolution is, between its output channels).
StageGroup find_group(const tir::Compute& compute, size_t begin);

// Its loops. They allocate what is local.
tir::Stmt group_loops(const tir::Compute& compute, const StageGroup& group, FlatBuffers& buffers,
                      const ScheduleOptions& options);

}  // namespace headrace::lower
