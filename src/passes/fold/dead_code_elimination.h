// DeadCodeElimination: removes lets and functions that the program's result does not need.
//
//   let %a = exp(%x);       ->   %x          a let whose variable is not used, and whose value has no effect
//   %x
//   def @unused(...) {...}  ->               a function that `main` does not reach
//
// Effects are writes of references, ops marked Stateful, and calls of functions that may have an effect or are unknown.
// A call that might not terminate has no effect by that alone. With `ignore_impurity` nothing has an effect.
//
// Values used only by removed expressions are removed too, including recursive functions that only call themselves.
// Functions are removed only if the module has a `main`; functions with a global_symbol, and functions that are not
// relay's, stay. With `inline_once`, a let whose variable is used once is replaced with its value at the use, unless
// the value has an effect or reads a reference, or the use is in a function within the one that binds it, where it
// would be evaluated at another time or repeatedly. If a removed expression shares an effect or a read of a reference
// with a remaining one, effects are bound first, in their order (passes/rewrite/effects.h, in_order). Needs no types.
// Preserves results to the last bit, unless `ignore_impurity` is set.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

struct DceOptions {
  bool inline_once = false;
  bool ignore_impurity = false;
};
// Reads "relay.DeadCodeElimination.inline_once" and "....ignore_impurity" from the context's configuration.
DceOptions dce_options(const pass::PassContext& context);

IRModule dead_code_elimination(const IRModule& module, const DceOptions& options = {});
// Removes lets only; every function stays.
IRModule drop_unused_lets(const IRModule& module);

}  // namespace headrace::passes
