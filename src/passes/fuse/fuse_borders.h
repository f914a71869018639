// Where FuseOps stopped, and why: the borders between the kernels that it makes.
//
//   nn.relu(nn.dense(exp(%x), %w))   ->   exp | nn.dense: FUSE_KINDS, the anchor takes nothing in front of it
//
// There is one border for each group whose result other groups read, or a let, a branch, a match or a function's end
// takes; what only the end of a global function's body reads is none. The codes are the HR_REASON_FUSE_* of
// include/headrace/reason.h.
#pragma once

#include <headrace/reason.h>

#include "passes/fuse/fuse_ops.h"

namespace headrace::passes {

struct FuseBorder {
  hr_reason code;
  Expr producer;            // the last op call of a group
  std::vector<Expr> users;  // the op calls that read it; empty when only what is no op call does
  std::string message;      // a sentence that names the ops
};

// Of the groups that fuse_ops(module, options) makes, function by function, operands first. Needs types.
std::vector<FuseBorder> find_fuse_borders(const IRModule& module, const FuseOptions& options = {});

// "FUSE_DEPTH" for HR_REASON_FUSE_DEPTH; InternalError for a code that is none of fusion's.
std::string_view name_of_fuse_reason(hr_reason code);

}  // namespace headrace::passes
