// The tensors that a stage of a program keeps in its working memory, for the planner of splits.
#pragma once

#include <functional>

#include "driver/straight_line.h"
#include "plan/pipeline/split.h"

namespace headrace::driver {

// Adds the buffers of a program to a problem whose first nodes are the program's calls, in their order. A stage that is
// compiled never takes less working memory than they need:
//   - A tensor has a buffer only if every kernel that fusion may make (passes/fuse/fuse_ops.h) leaves it in memory,
//     since its readers take it from there: not the results of the program, and not those of a call for which
//     `may_be_elsewhere`, because a backend may take it.
//   - A buffer is also held while calls run that lie between the call that makes it and one that reads it.
//   - A call that only reshapes shares the buffer of its operand, and has none of its own. The operands of a
//     concatenation have none, since they may be written into its result.
//   - A call whose result a later kernel may compute writes that kernel's buffer, if it is no larger than any result on
//     the way there: some tensor of that size is written while the call runs.
// Not counted: what kernels need besides, calls with several results, and operands of calls that the native passes
// replace by others.
void add_buffers(const StraightLine& line, const std::function<bool(const relay::CallNode&)>& may_be_elsewhere,
                 plan::SplitProblem& problem);

}  // namespace headrace::driver
