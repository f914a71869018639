// Explains where FuseOps stopped and why: lists the borders between the kernels that it makes.
//
//   nn.relu(nn.dense(exp(%x), %w))   ->   exp | nn.dense: FUSE_KINDS, the anchor takes nothing in front of it
//
// A group has a border if another group, a let, a branch, a match or the end of an inner function uses its result. A
// group used only by the end of a global function's body has none. The codes are the HR_REASON_FUSE_* of
// include/headrace/reason.h.
#pragma once

#include <headrace/reason.h>

#include "passes/fuse/fuse_ops.h"

namespace headrace::passes {

struct FuseBorder {
  hr_reason code;
  Expr producer;            // the last op call of a group
  std::vector<Expr> users;  // the op calls that read it; empty if no op call does
  std::string message;      // a sentence that names the ops
};

// Returns the borders of the groups that fuse_ops(module, options) makes, function by function, operands first. Needs
// types.
std::vector<FuseBorder> find_fuse_borders(const IRModule& module, const FuseOptions& options = {});

// Returns the name of a code: "FUSE_DEPTH" for HR_REASON_FUSE_DEPTH. Throws InternalError for a code that is not one of
// HR_REASON_FUSE_*.
std::string_view name_of_fuse_reason(hr_reason code);

}  // namespace headrace::passes
