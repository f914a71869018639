// LambdaLift: functions inside functions become functions of the module.
//
//   let %f = fn (%a) { add(%a, %x) };    ->   @main_f(%x, exp(%x))
//   %f(exp(%x))
//                                             def @main_f(%x, %a) { add(%a, %x) }
//
// Captured variables become the function's first parameters; a function that a let binds may call itself. A use other
// than a call becomes the global function where nothing is captured, else a closure that only calls it: `fn (%a) {
// @main_f(%x, %a) }`. Values that an inner function shares with its surroundings are bound by lets first
// (ToBasicBlockNormalForm). Functions that stay units (relay/function_attrs.h) and functions marked SkipOptimization
// are not lifted; nor are inner functions with type parameters, nor anything inside a function with type parameters.
//
// Needs types, with which the new parameters are declared. Preserves results to the last bit, and the order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule lambda_lift(const IRModule& module);

// Returns the call in a function that only passes on its captured variables and its parameters, `fn (%a) { @g(%c, %a)
// }`. Captured variables come first and are not parameters. Null for another function, and for one with attributes.
const relay::CallNode* handed_on(const relay::FunctionNode& function);

}  // namespace headrace::passes
