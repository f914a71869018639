// ToGraphNormalForm: lets are dropped, and uses of their variables become uses of the very node that was bound.
//
//   let %a = exp(%x); add(%a, %a)   ->   %0 = exp(%x); add(%0, %0)
//
// A let stays whose value writes or reads a reference, calls something that may, or is a function that calls itself:
// evaluated elsewhere it would give something else. One stays, too, whose written type names data types or functions:
// `let %l: List[float32] = Nil` says what the list is of. Other types that were written at a dropped let are gone.
// Where an expression with an effect is shared or in braces, effects are bound (passes/rewrite/effects.h, in_order).
// Needs no types.
// Preserves results to the last bit, and the order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule to_graph_normal_form(const IRModule& module);

}  // namespace headrace::passes
