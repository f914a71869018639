// DeadCodeElimination: what nothing needs is dropped.
//
//   let %a = exp(%x);       ->   %x          a let whose variable is not used, and whose value has no effect
//   %x
//   def @unused(...) {...}  ->               a function that `main` does not reach
//
// An effect is: a reference written, an op marked Stateful, a call of something that may have one (a function that is
// not known counts). That a call might never end is no effect. A value used only by what is dropped is dropped too, a
// recursive function that only itself uses included. Functions are dropped when the module has a `main`; those with a
// global_symbol, and those that are not relay's, stay. Needs no types. Preserves results to the last bit.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule dead_code_elimination(const IRModule& module);
// The lets alone; every function stays.
IRModule drop_unused_lets(const IRModule& module);

}  // namespace headrace::passes
