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
// Each function type becomes a data type, a value of it the constructor that names the function and holds what it
// captured, a call of a value a call of the function that looks (passes/functions/function_values.h). Before that,
// functions with type parameters get a copy for each use (specialize.h) and function literals become functions of the
// module (lambda_lift.h). A program that uses no function as a value is left alone; in another one, functions that no
// entry reaches are dropped, too. For executors that have no closures. Units that are called where they stand (what
// FuseOps makes, relay/function_attrs.h) stay.
//
// UserError for what has no such form: `main` or another entry that takes or gives functions, or data that holds some;
// a function value that has type parameters, whose type or captured values have dimensions that are symbols; one of a
// unit; data types that hold functions of their own type parameters; a program that needs infinitely many types.
//
// Needs types, gives types. Preserves results to the last bit, and the number and order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule defunctionalization(const IRModule& module);

}  // namespace headrace::passes
