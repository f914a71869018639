// Programs that no machine has the memory for are refused before the work.
#pragma once

#include "ir/module.h"

namespace headrace::driver {

// Of one tensor, and of all that a run holds at once.
inline constexpr int64_t kMaxBytes = int64_t{1} << 40;

// UserError, saying where, when a tensor of the typed module's functions is larger than kMaxBytes.
void check_tensor_sizes(const IRModule& module);

// UserError when a run would take more than kMaxBytes.
void check_run_size(int64_t arena_bytes);
// UserError at the op when its kernel's workspace would.
void check_workspace_size(int64_t workspace_bytes, const Span& op);

}  // namespace headrace::driver
