// ToANormalForm: every operation and constant is bound by a let, and operands are variables or names.
//
//   add(exp(%x), exp(%x))   ->   let %x1 = exp(%x);  let %x2 = add(%x1, %x1);  %x2      (one exp, shared)
//   add(%x, 1)              ->   let %x1 = 1;  let %x2 = add(%x, %x1);  %x2
//   if (%c) { exp(%x) } else { %y }   ->   the exp is bound in its branch
//
// A node is bound in the innermost scope that holds all its uses: used in both branches of an `if`, before the `if`;
// in one, in that branch. Scopes are the bodies of functions, branches and clauses. A let that is an operand becomes
// part of the chain around it. Needs no types. Preserves results to the last bit, and the order of effects;
// ToGraphNormalForm gives a program without lets back.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule to_a_normal_form(const IRModule& module);

}  // namespace headrace::passes
