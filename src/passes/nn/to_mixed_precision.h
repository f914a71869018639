// ToMixedPrecision: float32 networks compute in float16 or bfloat16 where that is faster and safe; or in float64.
//
//   nn.relu(nn.conv2d(%x, %w))   ->   nn.relu(nn.conv2d(cast(%x, float16), cast(%w, float16), out_dtype="float16"))
//
// Each op has a category, from the lists in precision_lists.cc or from its user. Products always compute in the small
// type (and accumulate in float32). Ops that only move, compare or scale follow when all operands are small already;
// constants and parameters are cast for them, and an op of constants alone stays. Ops whose range or rounding matters
// (exp, sums and means, softmax, norms over the data) never do, nor does a clip to bounds that the small type does not
// reach. An op without a category does not either, or is an error (`refuses_missing`). Values stay small through lets
// and items of tuples. Parameters keep their type, and so do operands of other expressions. Functions without callers
// return what they computed, including the parts of a tuple literal at their end; the result of an `if`, a match, a
// variable bound to a tuple and a function with callers keeps its type. With `keeps_result_type` all results do. Casts
// of constants fold (FoldConstant).
//
// Needs types. Changes results by the rounding of the small type.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

struct MixedPrecisionOptions {
  DataType type = DataType::float_(16);
  bool refuses_missing = false;
  bool keeps_result_type = false;
};
// Reads "relay.ToMixedPrecision.mixed_precision_type", "....missing_op_mode" (0 refuses, 1 and 2 do not) and
// "....keep_orig_output_dtype" from the context's configuration. UserError for a type other than float16, bfloat16
// and float64, and for another mode.
MixedPrecisionOptions mixed_precision_options(const pass::PassContext& context);

IRModule to_mixed_precision(const IRModule& module, const MixedPrecisionOptions& options = {});

}  // namespace headrace::passes
