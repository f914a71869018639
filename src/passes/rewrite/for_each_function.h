// Applies a rewrite to the body of each relay function of a module, the frame of most passes.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// Applies `rewrite` to the body of each relay function; returns the module itself when no body changed. Leaves alone
// functions that another compiler takes (attribute Compiler), those marked SkipOptimization and primitive ones
// (relay/function_attrs.h). A function with another body loses an annotation of its result that has a dimension `?`:
// InferType writes it, and the new body may have a known size there.
IRModule rewrite_bodies(const IRModule& module, const std::function<Expr(const Expr&)>& rewrite);

}  // namespace headrace::passes
