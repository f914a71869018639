// Inline: a call of a function that is marked `Inline` (or `inline`) becomes the function's body. The function is one
// of the module, or a literal that is called where it stands or by the let that names it.
//
//   def @scale(%x: float32, Inline=1) { multiply(%x, 2f) }
//   def @main(%y: float32) { @scale(exp(%y)) }                ->   def @main(%y: float32) { multiply(exp(%y), 2f) }
//
// An argument replaces its parameter. A let binds it instead where replacing would evaluate it at another time or
// another number of times: when it has effects or reads a reference, or when an inner function uses the parameter.
// Shared expressions with effects, and such in braces, are bound before (passes/rewrite/effects.h, in_order). These
// stay: a marked function in a cycle of marked functions, and a function that passes leave alone
// (relay/function_attrs.h); but the name of a marked one for another compiler becomes the function as a literal, where
// it has no global_symbol and names no function itself. A name that is a value, such as an argument, becomes the
// function as a literal, except one with type parameters or symbols, which each use may choose anew. A marked function
// that has lost all references is dropped, unless it is `main` or has a global_symbol; one that never had any stays.
// Functions that each call the next twice double in size at every level: after kMostInlinedNodes new nodes the
// remaining calls and names stay.
//
// Needs types, to find the values of type variables and symbols at each call. Preserves results to the last bit, and
// the order and number of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

inline constexpr int64_t kMostInlinedNodes = 200'000;
// The attribute of functions that Inline takes; its value is not 0.
inline constexpr const char* kInlineAttr = "Inline";

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
