// Loops of stages that run together (stages/stage_group.h).
#pragma once

#include "lower/loops/schedule.h"
#include "lower/stages/flat_stage.h"
#include "lower/stages/stage_group.h"

namespace headrace::lower {

// Makes the loops of a group, which allocate its local buffers.
tir::Stmt group_loops(const tir::Compute& compute, const StageGroup& group, FlatBuffers& buffers,
                      const cost::Machine& machine);

}  // namespace headrace::lower
