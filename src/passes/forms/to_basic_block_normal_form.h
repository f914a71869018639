// ToBasicBlockNormalForm: what one block computes and another uses is bound by a let.
//
//   %0 = exp(%x);                          let %y = exp(%x);
//   if (%c) { add(%0, 1f) } else { %0 }  ->  if (%c) { add(%y, 1f) } else { %y }
//
// A block is the body of a function, a branch or a clause, without blocks inside it. A value that crosses a block is
// bound in the innermost scope that holds all its uses; a value used in a single block stays in the graph. Needs no
// types. Preserves results to the last bit, and the order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule to_basic_block_normal_form(const IRModule& module);
// Returns whether an expression, or a function's body, needs no more lets.
bool is_basic_block_normal_form(const Expr& expr);

}  // namespace headrace::passes
