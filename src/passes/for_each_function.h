// What every pass over function bodies does: apply a rewrite to each relay function of a module.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

// The module with `rewrite(body)` as each relay function's body; the module itself when no body changed. Functions that
// another compiler takes (attribute Compiler), those marked SkipOptimization and primitive ones
// (relay/function_attrs.h) are left alone.
IRModule rewrite_bodies(const IRModule& module, const std::function<Expr(const Expr&)>& rewrite);

// As above, each body by relay::rewrite_post_order. Nodes whose evaluation has effects (passes/effects.h) only get
// their rewritten children: a rewrite that drops operands loses no effect.
IRModule rewrite_pure_nodes(const IRModule& module,
                            const std::function<Expr(const Expr& before, const Expr& after)>& rewrite);

}  // namespace headrace::passes
