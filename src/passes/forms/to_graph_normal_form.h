// ToGraphNormalForm: lets are dropped, and uses of their variables become uses of the very node that was bound.
//
//   let %a = exp(%x); add(%a, %a)   ->   %0 = exp(%x); add(%0, %0)
//
// A let stays whose value writes or reads a reference, calls something that may, or is a function that calls itself:
// evaluated elsewhere it would give something else. Needs no types; a type that was written at a dropped let is gone.
// Preserves results to the last bit, and the order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule to_graph_normal_form(const IRModule& module);

}  // namespace headrace::passes
