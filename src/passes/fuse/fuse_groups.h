// Groups the op calls of a function body for FuseOps. fuse_ops.h states the rules.
#pragma once

#include <headrace/reason.h>

#include "ops/call_fusion.h"
#include "passes/fuse/fuse_ops.h"

namespace headrace::passes {

struct FuseGroup {
  std::vector<Expr> members;  // op calls, operands first; the last one gives the group's result
};

// Partitions the op calls of `body`, except those inside functions with Primitive, Compiler or Composite, into groups.
// Returns the groups in the order of their last members. Only the last member of a group is used outside of it. Needs
// types. O(n * (log n + max_depth)) for n nodes.
std::vector<FuseGroup> find_fuse_groups(const Expr& body, const FuseOptions& options);

// The reason why the last call of a group is not fused with its readers.
struct FuseStop {
  hr_reason code;
  Expr producer;            // the call
  std::vector<Expr> users;  // the op calls that read it, each once
  bool is_exit;             // an expression that is not an op call, or the end of the body, also uses it
  // The obstacle. If `is_exit`: the expression that uses the call, null for the end of the body. Otherwise: an op call
  // that cannot join, which is a reader or lies between `producer` and its post-dominator; null if there is no
  // post-dominator.
  Expr other;
  // For HR_REASON_FUSE_KINDS: the kinds that do not fit together. `kind` is that of the group that `producer` ends.
  // `other_kind` is that of the group of `other`, or how `other` itself reads its operand.
  ops::FusionKind kind = ops::FusionKind::opaque, other_kind = ops::FusionKind::opaque;
  bool is_other_group = false;  // `other_kind` is the kind of the group of `other`
};

// Returns a stop for each group that find_fuse_groups returns, in that order, except groups that only the end of the
// body reads.
std::vector<FuseStop> find_fuse_stops(const Expr& body, const FuseOptions& options);

// Returns whether the operand is a scalar constant, which is copied into the group. Other operands become arguments.
bool is_scalar_constant(const Expr& arg);

// Returns the expression whose op call computes `arg`: the tuple if `arg` is an item of one, otherwise `arg`.
const Expr& producer_of(const Expr& arg);

}  // namespace headrace::passes
