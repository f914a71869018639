// EliminateCommonSubexpr: merges equal calls of pure ops, and equal constants.
//
//   (exp(x), exp(x))   ->   %0 = exp(x); (%0, %0)
//
// Calls are equal if they have the same op, equal attributes and the same operands; constants, if they have the same
// shape, dtype and bits. Operands that are tuples are the same if their fields are, as those of `concatenate`. Ops with
// effects stay. Two calls in different branches, clauses or functions stay, because a merged call would be evaluated
// before both, even if neither is entered; if an equal call is in a scope around both, all three are merged. A second
// run changes nothing. Runs after passes that duplicate calls, before FuseOps. Preserves results to the last bit.
//
// Calls for which the option `fskip` returns true stay, as if they had an effect.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// Returns whether a call must stay. Called once for each call. If null, no call is skipped.
using SkipCall = std::function<bool(const relay::Call& call)>;
// Reads "relay.EliminateCommonSubexpr.fskip" from the context's configuration. The returned function throws UserError
// if the option's function returns anything but a bool.
SkipCall common_subexpr_skip(const pass::PassContext& context);

IRModule eliminate_common_subexpr(const IRModule& module, const SkipCall& skip = {});

}  // namespace headrace::passes
