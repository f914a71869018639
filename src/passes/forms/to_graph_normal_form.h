// ToGraphNormalForm: lets are dropped, and uses of their variables become uses of the very node that was bound.
//
//   let %a = exp(%x); add(%a, %a)   ->   %0 = exp(%x); add(%0, %0)
//
// A let stays when its value writes or reads a reference, calls something that may, or is a recursive function:
// evaluated elsewhere it would give another result. A let also stays when its written type contains data types or
// functions: `let %l: List[float32] = Nil` is the only place with the list's item type. Other types written at a
// dropped let are lost. Shared expressions with effects, and such in braces, are bound first (passes/rewrite/effects.h,
// in_order). Needs no types. Preserves results to the last bit, and the order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule to_graph_normal_form(const IRModule& module);

}  // namespace headrace::passes
