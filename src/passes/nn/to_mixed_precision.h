// ToMixedPrecision: float32 networks compute in float16 or bfloat16 where that is faster and safe.
//
//   nn.relu(nn.conv2d(%x, %w))   ->   cast(nn.relu(nn.conv2d(cast(%x, float16), cast(%w, float16))), float32)
//
// Each op is of one kind, by the lists in to_mixed_precision.cc: products always compute in the small type (they add up
// in float32); ops that only move, compare or scale follow when all of their operands that are no constants are small
// already; the rest, whose range or rounding matters (exp, sums, softmax, norms), never do, and an op that is in no
// list does not either. Values stay small through lets and items of tuples. Parameters, results of functions, and what
// other expressions take keep their type: callers see none of it. Casts of constants fold (FoldConstant).
//
// Needs types. Changes results by the rounding of the small type.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// "relay.ToMixedPrecision.mixed_precision_type" of the context's configuration, a text; float16 without it. UserError
// for any other than float16 and bfloat16.
DataType mixed_precision_type(const pass::PassContext& context);

IRModule to_mixed_precision(const IRModule& module, DataType type = DataType::float_(16));

}  // namespace headrace::passes
