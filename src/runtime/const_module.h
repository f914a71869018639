// Modules that give constants to the functions of a module that they import: a backend keeps its constants apart from
// its code, and each region's function gets them once, before its first call.
//
//   const_loader {"f": ["f_const_0"]}  imports  mychip: f, __init_f        __init_f([f_const_0]); f(x, y); f(x, y)
#pragma once

#include "runtime/module.h"
#include "tensor/ndarray.h"

namespace headrace::runtime {

inline constexpr std::string_view kConstModuleKind = "const_loader";
// The prefix of the function that takes the constants of another one.
inline constexpr std::string_view kInitPrefix = "__init_";

// Makes a module with the function `symbol` of its imports, whose first import is `code`. `code` has the function
// __init_SYMBOL, which is called with the constants in this order, once for each module, before the first call of
// SYMBOL; threads that call meanwhile wait. When it throws, so does that call, and the next one tries again.
Module make_const_module(const std::string& symbol, const Array<NDArray>& constants, const Module& code);

// Makes a module of what such a module is saved as, without its imports. UserError for other bytes.
Module load_const_module(const SavedModule& saved);

}  // namespace headrace::runtime
