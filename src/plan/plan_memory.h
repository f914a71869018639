// Memory plan: one arena at each location for the storages that lie there. Storages that are never in use at the same
// time share bytes of it.
//
// Each storage takes the smallest gap that fits, in the order of first use, and only whole lines of 64 bytes; the arena
// grows when none fits. Runs after join_views, before the emitters. n storages take n log n.
#pragma once

#include "plan/program.h"

namespace headrace::plan {

// Gives every storage that a step uses its offset.
void plan_memory(Program& program);

// Returns the size of the arena at a location, for a program whose memory is planned.
int64_t arena_bytes(const Program& program, const artifact::Location& location);

}  // namespace headrace::plan
