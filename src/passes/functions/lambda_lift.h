// LambdaLift: functions inside functions become functions of the module.
//
//   let %f = fn (%a) { add(%a, %x) };    ->   @main_f(%x, exp(%x))
//   %f(exp(%x))
//                                             def @main_f(%x, %a) { add(%a, %x) }
//
// What such a function captures becomes its first parameters; one that is bound by a let may call itself. A use that is
// no call is the function of the module where nothing is captured, else a closure that does nothing but call it:
// `fn (%a) { @main_f(%x, %a) }`. A value that an inner function shares with what is around it is bound by a let before
// (ToBasicBlockNormalForm). Functions that stay units (relay/function_attrs.h) and those marked SkipOptimization stay
// where they are; so do all of a function with type parameters, and an inner one that has type parameters.
//
// Needs types, which the new parameters are declared with. Preserves results to the last bit, and the order of effects.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule lambda_lift(const IRModule& module);

// Returns the call in a function that only passes on its captured variables and its parameters, `fn (%a) { @g(%c, %a)
// }`. Captured variables come first and are not parameters. Null for another function, and for one with attributes.
const relay::CallNode* handed_on(const relay::FunctionNode& function);

}  // namespace headrace::passes
