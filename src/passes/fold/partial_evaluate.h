// PartialEvaluate: evaluates the parts of a program that depend on known values alone. The rest, the residual program,
// is left in administrative normal form.
//
//   def @power(%x: float32, %n: int32) -> float32 {
//     if (equal(%n, 0)) { 1f } else { multiply(%x, @power(%x, subtract(%n, 1))) }
//   }
//   def @main(%x: float32) { @power(%x, 3) }
//     ->
//   def @main(%x: float32) {
//     let %a = multiply(%x, 1f); let %b = multiply(%x, %a); let %c = multiply(%x, %b); %c
//   }
//
// How it works: this is an online partial evaluator, an interpreter whose values may be unknown. It walks the body of
// each function once, in the order of evaluation, and computes for each expression a value that is known or dynamic
// (Known in residual.h). An operation on known operands runs at once. Any other operation is emitted as a let of the
// residual program (Residual), and the variable of that let is its value from then on. A known value costs no code
// until the residual program needs it as an operand; only then is an expression built for it ("reified"). The
// contents of references are tracked on the way (Store).
//
// Why that way: decisions are made with the values at hand, so a separate analysis of what is constant is not needed,
// and each call of a function is specialised for its own arguments. Every operation that remains is bound by a let in
// the order of evaluation, so effects are neither repeated, nor dropped, nor reordered. A plain walk would not
// terminate on recursive programs, therefore inlining is bounded as described below.
//
// Known values are: constants and the results of ops on them (up to 64 kB), tuples, values of data types, function
// literals, names of functions, ops and constructors, and the contents of references that this run created. If a
// condition is known, the taken branch or clause replaces its `if` or `match`. If the callee is known, its body
// replaces the call. If a condition is dynamic, all branches stay and each is evaluated separately. After them, and
// after a call of an unknown function, the contents of all references count as unknown.
//
// The work is bounded:
//   - A recursive call is inlined only if at least one argument is known, only if known conditions alone lead to it (a
//     loop with an unknown trip count stays a loop), and at most kMostUnrolled levels deep.
//   - No call is inlined once the function that is being evaluated has unfolded more than its limit of bindings and
//     calls: kMostUnfolded for `main`, kMostUnfolded divided by the number of functions for each other one.
// Calls that are not inlined stay calls. Functions that passes leave alone (relay/function_attrs.h), and function
// literals with type parameters, stay as they are.
//
// Drops lets whose variables are not used. Each remaining read and write of a reference, and each call with an effect,
// happens as often as before and in the same order; reads of known contents disappear. Needs types. Preserves results
// to the last bit, because the interpreter computes the known values. Also called PartialEval.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// The limits above. `kMostUnrolled` counts nested activations of one function.
inline constexpr size_t kMostUnrolled = 1'000;
inline constexpr int64_t kMostUnfolded = 20'000;

// Reports calls of constants that the budget for evaluation leaves to `context.note`, each place of the program once.
IRModule partial_evaluate(const IRModule& module, const pass::PassContext& context);

}  // namespace headrace::passes
