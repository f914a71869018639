// Registers the ops, their compute rules, the passes and the object types of a process. The functions that other
// languages call are registered by functions/register_functions.h.
#pragma once

namespace headrace::driver {

// Registers everything. Call before anything reads an op: ops are read without a lock, so nothing may be added to them
// later. Every entry point of the driver calls it. Thread-safe; only the first call does work.
void register_all();

}  // namespace headrace::driver
