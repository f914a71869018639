// The list of all ops.
#pragma once

namespace headrace::ops {

// Registers every op of the project, once a process; later calls do nothing. Call it before naming ops.
void register_all_ops();

}  // namespace headrace::ops
