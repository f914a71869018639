// Passes for code generators that take a whole module: they move functions marked Compiler in and out of the functions
// that call them. `compiler` selects the functions of one compiler; empty selects all. They preserve results to the
// last bit, and leave functions alone that passes do not enter.
#pragma once

#include "relay/expr.h"

namespace headrace::partition {

// OutlineCompilerFunctionsWithExistingGlobalSymbols: function literals marked Compiler, also those that a let binds,
// become functions of the module under their global_symbol; two equal ones become one.
//   let %f = fn (%a, Compiler="x", global_symbol="g") { exp(%a) }; %f(%x)   ->   @g(%x)
// UserError at a literal without a global_symbol or with captured variables, and for a name that a different function
// has already.
IRModule outline_compiler_functions(const IRModule& module, const std::string& compiler = "");

// MarkCompilerFunctionsAsExtern: the attributes of functions of the module that are marked Compiler become the one
// attribute Extern=1, which says that they are compiled already. Calls of them stay.
IRModule mark_compiler_functions_as_extern(const IRModule& module, const std::string& compiler = "");

// InlineCompilerFunctionsBoundTo: calls of these functions become their bodies, in which calls of composite functions
// become bodies, too; the functions leave the module. It undoes a partitioning that does not pay. An argument with an
// effect is bound by a let, so that it is evaluated once. UserError for a name that is not a function of the module, or
// one that is not marked Compiler, and for a function that something else than a call refers to.
IRModule inline_compiler_functions(const IRModule& module, const std::vector<std::string>& names);

// Makes calls of composite functions with one of these names their bodies, in the functions that passes enter.
// Arguments with an effect are bound as above. New nodes have no types.
IRModule inline_composites(const IRModule& module, const std::vector<std::string>& names);

}  // namespace headrace::partition
