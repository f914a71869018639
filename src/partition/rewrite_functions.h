// Rewrites the functions of a module that passes enter, as the passes of this room do.
#pragma once

#include "relay/expr.h"

namespace headrace::partition {

// Replaces the body of every relay function that is neither sealed nor left alone (relay/function_attrs.h) by what
// `rewrite` gives for its name and the function. Types of functions stay, because a new body has the type of the old
// one. Returns the module itself when no body changed.
IRModule rewrite_entered_functions(
    const IRModule& module,
    const std::function<Expr(const std::string& name, const relay::FunctionNode& function)>& rewrite);

}  // namespace headrace::partition
