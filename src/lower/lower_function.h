// From a fused group to the compute form and to loops: the compute rules of the group's ops, joined.
#pragma once

#include "lower/schedule.h"
#include "relay/expr.h"

namespace headrace::lower {

// What `group` (a function of ops, tuples and scalar constants, typed, of static shapes) computes: its parameters,
// tuples flattened, then its results. UserError when an op has no compute rule, or the rule refuses the call.
tir::Compute compute_of(const relay::Function& group);

// The kernel of `group` under the name `symbol`.
tir::PrimFunc lower_function(const relay::Function& group, const std::string& symbol, const ScheduleOptions& options);

}  // namespace headrace::lower
