// DeadCodeElimination: what nothing needs is dropped.
//
//   let %a = exp(%x);       ->   %x          a let whose variable is not used, and whose value has no effect
//   %x
//   def @unused(...) {...}  ->               a function that `main` does not reach
//
// An effect is: a reference written, an op marked Stateful, a call of something that may have one (a function that is
// not known counts). That a call might never end is no effect; nor is anything with `ignore_impurity`. A value used
// only by what is dropped is dropped too, a recursive function that only itself uses included. Functions are dropped
// when the module has a `main`; those with a global_symbol, and those that are not relay's, stay. With `inline_once` a
// let whose variable is used once becomes its value there, unless that has an effect, reads a reference, or the use
// lies in a function inside: it would be evaluated at another time, or again. Where what is dropped shares an effect,
// or what reads a reference, with what is not, effects are bound first, in their order (passes/rewrite/effects.h,
// in_order). Needs no types. Preserves results to the last bit, without `ignore_impurity`.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

struct DceOptions {
  bool inline_once = false;
  bool ignore_impurity = false;
};
// From "relay.DeadCodeElimination.inline_once" and "....ignore_impurity" of the context's configuration.
DceOptions dce_options(const pass::PassContext& context);

IRModule dead_code_elimination(const IRModule& module, const DceOptions& options = {});
// The lets alone; every function stays.
IRModule drop_unused_lets(const IRModule& module);

}  // namespace headrace::passes
