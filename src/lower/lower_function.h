// Lowers a fused group to its compute form and to loops, by the compute rules of its ops.
#pragma once

#include "lower/loops/schedule.h"
#include "relay/expr.h"

namespace headrace::lower {

// The largest buffer that a kernel may keep between two of its stages.
inline constexpr int64_t kMaxBufferBytes = int64_t{1} << 40;

// Returns the compute form of `group`: its parameters, then its results, tuples flattened. `group` is a typed function
// of tensors with static shapes, made of ops, tuples and scalar constants. UserError when an op has no compute rule,
// when the rule refuses the call, or when the op would keep a buffer larger than kMaxBufferBytes.
tir::Compute compute_of(const relay::Function& group);

// Makes the kernel of `group` under the name `symbol`: by compute rules, or by the kernel rule of its only op. A kernel
// of compute rules writes its result with the strides that the group has (relay::kResultStrides).
tir::PrimFunc lower_function(const relay::Function& group, const std::string& symbol, const cost::Machine& machine);

}  // namespace headrace::lower
