// EliminateCommonSubexpr: equal calls of pure ops, and equal constants, become one.
//
//   (exp(x), exp(x))   ->   %0 = exp(x); (%0, %0)
//
// Equal means: the same op, equal attributes, the same operands; for constants, the same shape, dtype and bits. Ops
// with effects are left, as are calls of which one lies in one branch, clause or function and the other in another: as
// one they would be evaluated before both, even if neither is entered. Where an equal call lies around the two, all are
// one. A second run finds nothing more. Runs after passes that duplicate, before FuseOps. Preserves results to the last
// bit.
//
// Calls that the option `fskip` says true of stay as they are, as if they had an effect.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// Whether a call is left alone; asked once of each. Null: none is.
using SkipCall = std::function<bool(const relay::Call& call)>;
// "relay.EliminateCommonSubexpr.fskip" of the context's configuration; UserError when it gives no bool.
SkipCall common_subexpr_skip(const pass::PassContext& context);

IRModule eliminate_common_subexpr(const IRModule& module, const SkipCall& skip = {});

}  // namespace headrace::passes
