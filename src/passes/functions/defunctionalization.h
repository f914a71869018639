// Defunctionalization: a program with functions as values becomes one without (J. C. Reynolds, "Definitional
// interpreters for higher-order programming languages", 1972).
//
//   def @twice(%f: fn (float32) -> float32, %x: float32) { %f(%f(%x)) }
//   def @main(%x: float32) { @twice(fn (%y: float32) { add(%x, %y) }, 1f) }
//     ->
//   type Fn0 { Fn0_main_fn(float32) }
//   def @main_fn(%x: float32, %y: float32) -> float32 { add(%x, %y) }
//   def @apply_Fn0(%f: Fn0, %x0: float32) -> float32 { match (%f) { Fn0_main_fn(%c0) => @main_fn(%c0, %x0) } }
//   def @twice(%f: Fn0, %x: float32) { @apply_Fn0(%f, @apply_Fn0(%f, %x)) }
//   def @main(%x: float32) { @twice(Fn0_main_fn(%x), 1f) }
//
// Each function type becomes a data type. A function value becomes a constructor that names the function and holds its
// captured values, and a call of a function value becomes a call of a function that matches on the constructor
// (passes/functions/function_values.h). Before that, generic functions get a copy for each use (specialize.h), and
// function literals become functions of the module (lambda_lift.h). A program without function values stays as it is;
// in another one, functions that no entry reaches are dropped, too. For executors without closures. Units that are
// called in place (made by FuseOps, relay/function_attrs.h) stay.
//
// UserError for programs without such a form: an entry such as `main` that takes or returns functions, or data that
// contains some; a function value that has type parameters, or whose type or captured values have symbolic dimensions;
// a unit used as a value; data types that contain functions of their own type parameters; a program that needs
// infinitely many types.
//
// Needs types and returns a typed module. Preserves results to the last bit, and the number and order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule defunctionalization(const IRModule& module);

}  // namespace headrace::passes
