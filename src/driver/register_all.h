// Registers the ops, their compute rules, the object types and the global functions of a process.
#pragma once

namespace headrace::driver {

// Registers everything. Call before anything reads an op: ops are read without a lock, so nothing may be added to them
// later. Every entry point of the driver calls it. Thread-safe; only the first call does work.
void register_all();

}  // namespace headrace::driver
