// Inline: a call of a function that is marked `Inline` (or `inline`) becomes the function's body. The function is one
// of the module, or a literal that is called where it stands or by the let that names it.
//
//   def @scale(%x: float32, Inline=1) { multiply(%x, 2f) }
//   def @main(%y: float32) { @scale(exp(%y)) }                ->   def @main(%y: float32) { multiply(exp(%y), 2f) }
//
// An argument takes the place of its parameter; it is bound by a let instead where that would evaluate it at another
// time or another number of times: it has effects or reads a reference, or an inner function uses the parameter. Such
// expressions that are shared or in braces are bound before (passes/rewrite/effects.h, in_order). A marked function
// that calls itself, alone or through other marked ones, stays; so does what passes leave alone
// (relay/function_attrs.h), and a use that is no call. A marked function that nothing refers to any more is dropped,
// unless it is `main` or has a global_symbol. Functions that call each other twice, again and again, double in size
// with each: past kMostInlinedNodes new nodes the calls that are left stay.
//
// Needs types, for what type variables and symbols of the function are at a call. Preserves results to the last bit,
// and the order and number of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

inline constexpr int64_t kMostInlinedNodes = 200'000;

IRModule inline_functions(const IRModule& module);

// InlineCalls: inlines all calls of functions outside of cycles, because graph programs have no call instruction.
//   let %f = fn (%a) { multiply(%a, %x) }; @g(%f(%y))   ->   @g's body, of multiply(%y, %x)
// A function that is passed as an argument, and called after its callee was inlined, is inlined in turn. All functions
// of the module stay; DeadCodeElimination drops those that are not used any more.
IRModule inline_calls(const IRModule& module);
// Inlines with at most `nodes_left` new nodes, which it counts down; a negative value means that calls stayed for lack
// of more.
IRModule inline_calls(const IRModule& module, int64_t& nodes_left);

}  // namespace headrace::passes
