// Rejects programs that need more memory than any machine has, before the compile spends time on them.
#pragma once

#include "ir/module.h"

namespace headrace::driver {

// The limit for one tensor, and for all memory that a run holds at once: 1 TiB.
inline constexpr int64_t kMaxBytes = int64_t{1} << 40;

// Throws UserError at the first tensor larger than kMaxBytes, and at a tensor that an artifact cannot hold (too many
// dimensions, elements that are handles or vectors). `module` must be typed.
void check_tensor_sizes(const IRModule& module);

// Throws UserError if the memory of a run is larger than kMaxBytes.
void check_run_size(int64_t arena_bytes);
// Throws UserError at `op` if the workspace of its kernel is larger than kMaxBytes.
void check_workspace_size(int64_t workspace_bytes, const Span& op);

}  // namespace headrace::driver
