// Which op calls of a function body FuseOps puts together; the rules are in fuse_ops.h.
#pragma once

#include <headrace/reason.h>

#include "ops/call_fusion.h"
#include "passes/fuse/fuse_ops.h"

namespace headrace::passes {

struct FuseGroup {
  std::vector<Expr> members;  // op calls, operands first; the last one gives the group's result
};

// Every op call of `body` that is not inside a function with Primitive, Compiler or Composite, in exactly one group;
// the groups in the order of their last members. Only the last member of a group is used outside of it. Needs types.
// O(n * (log n + max_depth)) for n nodes.
std::vector<FuseGroup> find_fuse_groups(const Expr& body, const FuseOptions& options);

// Why the last call of a group shares no kernel with what reads it.
struct FuseStop {
  hr_reason code;
  Expr producer;            // the call
  std::vector<Expr> users;  // the op calls that read it, each once
  bool is_exit;             // something else uses it, too
  // What is in the way: that something, null for the end of the body; where there is none, an op call, which may lie
  // between `producer` and where its readers meet. Null where they do not meet.
  Expr other;
  // Of HR_REASON_FUSE_KINDS, what was compared: the kind of the group that `producer` ends, and that of `other`, its
  // group's or its own: how it reads its operand.
  ops::FusionKind kind = ops::FusionKind::opaque, other_kind = ops::FusionKind::opaque;
  bool is_other_group = false;  // `other_kind` is its group's
};

// One for each group that find_fuse_groups gives, in that order, but for those that only the end of the body reads.
std::vector<FuseStop> find_fuse_stops(const Expr& body, const FuseOptions& options);

// Such an operand is in the group itself; others are arguments of it.
bool is_scalar_constant(const Expr& arg);

// The expression whose op call gives `arg`: itself, or the tuple it is an item of.
const Expr& producer_of(const Expr& arg);

}  // namespace headrace::passes
