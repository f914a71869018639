// FuseOps: groups of op calls become calls of inline functions, each compiled as one kernel.
//
//   %0 = nn.conv2d(%x, %w);          %0 = fn (%p0, %p1, %p2, Primitive=1) {
//   %1 = add(%0, %b);            ->    nn.relu(add(nn.conv2d(%p0, %p1), %p2))
//   nn.relu(%1)                      };
//                                    %0(%x, %w, %b)
//
// After it, every op call lies in a function with Primitive=1 (relay/function_attrs.h) whose parameters and arguments
// are tensors: tuples are taken apart outside, or put together inside. Scalar constants stay inside, others are
// arguments. Everything inside and the call itself keep their types; the call has the span of the group's heaviest op.
//
// A group holds an op together with its post-dominator and all ops on the ways between (Relay's rules):
//   - an anchor (conv2d, dense) takes elementwise ops after it, and broadcasts on their side inputs;
//   - elementwise and broadcast ops join any op that is no opaque one, but no anchor from in front;
//   - an injective op (transpose, concatenate, split) joins injective, broadcast and elementwise ops, never a reduction
//     or an anchor;
//   - a reduction ends its group.
// A group has at most max_depth op calls and max_args tensors around it: the cost of compiling a kernel grows faster
// than their number. An op that alone has more (a split into thousands) is a group by itself.
// Not as in Relay: `reshape`, `reshape_like` and `nn.batch_flatten` are groups of their own, since alone they cost
// nothing (a view), and inside a kernel they cost index arithmetic; ops whose result has an unknown dimension, or one
// that only an operand's value tells, too: inside a kernel that operand is a tensor of any value. Nothing joins across
// a function's, branch's, let's or match's border, nor across annotation.stop_fusion, which is a view, too. The
// compiler's lists run ToGraphNormalForm first, which drops the lets that only name values.
//
// Where a group ends, and by which of these rules: fuse_borders.h.
//
// Needs types. Runs last, after every pass that looks for ops. Preserves results to the last bit.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

struct FuseOptions {
  int64_t max_depth = 256;  // op calls a group; 1: every op call is a group of its own
  int64_t max_args = 256;   // operands of its op calls and results, less those that are handed on inside
};

// From "relay.FuseOps.max_depth" of the context's configuration; 1 at the level that "relay.FuseOps.fuse_opt_level"
// gives, or else the context's, if that is 0. UserError for a depth that is no number from 1 on, a level that is none
// from -1 on.
FuseOptions fuse_options(const pass::PassContext& context);

IRModule fuse_ops(const IRModule& module, const FuseOptions& options = {});

}  // namespace headrace::passes
