// What a process knows: ops, their compute rules.
#pragma once

namespace headrace::driver {

// Makes all ops and rules known before anything reads them: ops are read without a lock, so nothing may be added to
// them later. Every way into the driver calls it; threads may call it at once, and only the first call does work.
void register_all();

}  // namespace headrace::driver
