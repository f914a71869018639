// FuseOps: puts groups of op calls into inline functions, each of which is compiled as one kernel.
//
//   %0 = nn.conv2d(%x, %w);          %0 = fn (%p0, %p1, %p2, Primitive=1) {
//   %1 = add(%0, %b);            ->    nn.relu(add(nn.conv2d(%p0, %p1), %p2))
//   nn.relu(%1)                      };
//                                    %0(%x, %w, %b)
//
// After it, every op call lies in a function with Primitive=1 (relay/function_attrs.h) whose parameters and arguments
// are tensors: items are taken out of tuples outside of the function, and tuples of operands are built inside. Scalar
// constants stay inside, other constants are arguments. The expressions inside and the call keep their types; the call
// has the span of the group's heaviest op.
//
// A group contains an op, its post-dominator and all ops on the paths between them (Relay's rules):
//   - an anchor (conv2d, dense) takes elementwise ops after it, and broadcasts on their side inputs;
//   - elementwise and broadcast ops join any op that is not opaque, but are not fused in front of an anchor;
//   - an injective op (transpose, concatenate, split) joins injective, broadcast and elementwise ops, never a reduction
//     or an anchor;
//   - a reduction ends its group.
// A group has at most max_depth op calls and max_args tensors as operands and results, because the cost of compiling a
// kernel grows faster than their number. An op that alone exceeds the limit (a split into thousands) is a group by
// itself.
//
// Differences from Relay:
//   - `reshape`, `reshape_like` and `nn.batch_flatten` are separate groups. Alone they are free (a view), but inside a
//     kernel they cost index arithmetic. annotation.stop_fusion, across which nothing is fused, is a view, too.
//   - Ops whose result has an unknown dimension, or a dimension that depends on the value of an operand, are separate
//     groups, because inside a kernel the operand's value is unknown.
// Nothing is fused across the border of a function, branch, let or match. The compiler's lists run ToGraphNormalForm
// first, which drops the lets that only name values.
//
// fuse_borders.h reports where a group ends, and by which of these rules.
//
// Needs types. Runs last, after every pass that looks for ops. Preserves results to the last bit.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

struct FuseOptions {
  int64_t max_depth = 256;  // op calls in a group; 1: every op call is a separate group
  int64_t max_args = 256;   // tensors that enter or leave a group
};

// Reads "relay.FuseOps.max_depth" from the context's configuration. The depth is 1 if the level is 0, where the level
// is "relay.FuseOps.fuse_opt_level" or, if that is not set, the context's own. Throws UserError for a depth below 1 and
// for a level below -1.
FuseOptions fuse_options(const pass::PassContext& context);

IRModule fuse_ops(const IRModule& module, const FuseOptions& options = {});

}  // namespace headrace::passes
