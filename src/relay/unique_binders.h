// A variable of its own for each binder, as the rules of verify.h want it: what passes and interpreters ask of a
// program that comes from outside.
//
// Programs put together by hand often bind one variable in several places: two functions with the parameter %x, a let
// that shadows another. Its uses mean the innermost binder around them, as in text:
//   let %x = %y; let %x = add(%x, 1); multiply(%x, %x)   ->   let %x = %y; let %x1 = add(%x, 1); multiply(%x1, %x1)
// The binder that is met first keeps the variable, the others get new ones with the same name and annotation. A node
// that stands in several scopes and uses such a variable becomes one node for each thing that the variable is there;
// what does not use it stays shared. Rebuilt nodes have no checked type; all others stay what they are.
//
// Linear where no variable is bound twice. Elsewhere also in what is copied; UserError where that is out of proportion
// to the program, and where one list of parameters or one pattern has a variable twice. Needs no stack.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// The module itself when every binder of every function has a variable of its own. Two functions of the module may
// share variables. UserError for a function that uses a variable where nothing binds it.
IRModule unique_binders(const IRModule& module);
// As above for an expression, whose free variables stay what they are: they are none that it binds.
Expr unique_binders(const Expr& expr);

}  // namespace headrace::relay
