// FoldConstant: evaluates expressions that depend on constants alone and replaces them with their values.
//
//   add(1f, 2f)              ->  3f
//   (a, b).1                 ->  b
//   shape_of(x), x (2, 3)    ->  meta constant [2, 3]     if the shape of x is static; so does ndarray_size
//   if (True) {a} else {b}   ->  a
//   let %a = add(1f, 2f);    ->  multiply(%x, 3f)
//   multiply(%x, %a)
//
// Drops a let of a constant and puts the constant in place of its variable. Other lets stay where they are, which keeps
// the order of effects.
//
// Some constant expressions stay calls, because storing their result would cost more than computing it. A call stays
// if all of these hold:
//   - The result is large: more than 64 kB for ops that only repeat elements (zeros, ones, full, broadcast_to, their
//     `_like` forms, tile, repeat, arange), more than 16 MB for other ops.
//   - The result has more than 8 times the bytes of the constants that it is computed from. An operand whose
//     shape alone is read, such as that of zeros_like, does not count.
//   - Every reader is an elementwise or injective op, which computes the call inside its own kernel, or the call is
//     the function's result. As data, the result would enlarge the artifact and be read from memory; as part of a
//     kernel it does neither.
// A call of such an operand is folded by the same rule, with the operand's constants as its own:
//
//   add(%x, broadcast_to(c, shape=[256, 1000]))       stays, if c has 1000 elements
//   negative(broadcast_to(c, shape=[256, 1000]))      ->  meta constant (256, 1000), since 1 MB is below 16 MB
//   nn.dense(%x, broadcast_to(c, shape=[256, 1000]))  ->  a meta constant as the weight: nn.dense reads data
//
// Passes that need a Constant still find one: shapes and axes are small, and weights are read by ops such as nn.dense
// that do not compute operands inside their kernels.
//
// Needs types for sizes and shape_of only. Evaluates with the reference interpreter, on the context's threads and
// within a budget that grows with the data of the program's own constants (interp/evaluate.h). A build runs the pass
// twice; it sets kProgramBytes, so that results of the first run do not count as the program's own constants in the
// second. These stay calls:
//   - a call that exceeds the budget; it is reported to the context's `note` (HR_REASON_FOLD_LIMIT), as is a call that
//     stays for its large result and computes more than a repetition
//   - an op with effects, and anything that reads a reference
//   - a call that fails: a user's op whose function is not registered, operands that the op rejects. The program
//     reports the error when it runs the call.
// Preserves results, because the interpreter defines the ops. Frees each large constant after the call that alone reads
// it was folded, if nothing else holds the module (passes/rewrite/taken_constants.h).
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// The key of the context's configuration that holds the bytes of the program's own constants, an int. Only builds set
// it; without it they are those of the module.
inline constexpr const char* kProgramBytes = "headrace.FoldConstant.program_bytes";
// Returns the bytes of all constants in a module.
int64_t program_bytes(const IRModule& module);

IRModule fold_constant(IRModule module, const pass::PassContext& context);
// Folds the constant parts of one expression, which must have no effects.
Expr fold_constant(const Expr& expr, const pass::PassContext& context);

}  // namespace headrace::passes
