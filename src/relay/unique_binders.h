// Gives each binder a variable of its own, as verify.h requires. Passes and interpreters call this for a program that
// comes from outside.
//
// Programs put together by hand often bind one variable in several places: two functions with the parameter %x, a let
// that shadows another. A use refers to the innermost binder around it, as in text:
//   let %x = %y; let %x = add(%x, 1); multiply(%x, %x)   ->   let %x = %y; let %x1 = add(%x, 1); multiply(%x1, %x1)
// The binder that is met first keeps the variable, the others get new ones with the same name and annotation. A node
// that is shared by several scopes and uses such a variable is copied once for each binder that the variable refers to;
// nodes that do not use it stay shared. Rebuilt nodes have no checked type; all others stay as they are.
//
// Linear where no variable is bound twice, elsewhere also in the size of the copies. UserError where the copies are out
// of proportion to the program, and where one list of parameters or one pattern has a variable twice. Uses no
// recursion.
#pragma once

#include "ir/module.h"

namespace headrace::relay {

// Makes the binders of a module unique; returns the module itself when every binder of every function has a variable of
// its own. Two functions of the module may share variables. UserError for a function that uses a variable where nothing
// binds it.
IRModule unique_binders(const IRModule& module);
// Makes the binders of an expression unique; its free variables stay.
Expr unique_binders(const Expr& expr);

}  // namespace headrace::relay
