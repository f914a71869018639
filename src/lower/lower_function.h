// From a fused group to the compute form and to loops: the compute rules of the group's ops, joined.
#pragma once

#include "lower/schedule.h"
#include "relay/expr.h"

namespace headrace::lower {

// Of a buffer that a kernel keeps between two of its stages.
inline constexpr int64_t kMaxBufferBytes = int64_t{1} << 40;

// What `group` (a function of tensors that is made of ops, tuples and scalar constants, typed, of static shapes)
// computes: its parameters, then its results, tuples flattened. UserError when an op has no compute rule, the rule
// refuses the call, or the op would keep a buffer larger than kMaxBufferBytes.
tir::Compute compute_of(const relay::Function& group);

// The kernel of `group` under the name `symbol`: by compute rules, or by the kernel rule of its only op.
tir::PrimFunc lower_function(const relay::Function& group, const std::string& symbol, const ScheduleOptions& options);

}  // namespace headrace::lower
