// PartialEvaluate: what a program computes from what it knows is computed now; the rest is left, in administrative
// normal form.
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
// Known are constants and what ops make of them (to 64 kB), tuples, data, function literals, names, and what a
// reference holds that was made here. A branch or clause that is known to be taken takes the place of its `if` or
// `match`, the body of a known function the place of its call. Where a condition is not known both branches are left,
// evaluated by themselves, and after them nothing is known of references; nor is it after a call of an unknown
// function.
//
// The work is bounded. A function that calls itself is followed further only where something it is given is known, only
// as long as known conditions alone lead to the call (a loop whose end is not known stays a loop), at most
// kMostUnrolled deep; past kMostUnfolded evaluated bindings (of `main`; all others share as many) no call is followed
// any more. What is not followed stays a call. Functions that passes leave alone, and function literals with type
// parameters, stay as they are.
//
// Lets that nothing uses are dropped. Every read and write of a reference that is left, and every call with an effect,
// happens as often as before and in the same order; a read whose value is known is no longer one. Needs types.
// Preserves results to the last bit: the interpreter computes what is known. Also called PartialEval.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

inline constexpr size_t kMostUnrolled = 1'000;
inline constexpr int64_t kMostUnfolded = 20'000;

IRModule partial_evaluate(const IRModule& module);

}  // namespace headrace::passes
