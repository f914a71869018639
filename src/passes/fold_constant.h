// FoldConstant: what depends on constants alone becomes a constant.
//
//   add(1f, 2f)              ->  3f
//   (a, b).1                 ->  b
//   shape_of(x), x (2, 3)    ->  meta constant [2, 3]     where the type says the whole shape
//
// Needs types for shape_of only. Results of at most 1 MB are computed by the reference interpreter; above, by the
// context's evaluator when it has one. Ops with effects are left. Preserves results: the interpreter defines the ops.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule fold_constant(const IRModule& module, const pass::PassContext& context);
// The expression with its constant parts folded.
Expr fold_constant(const Expr& expr, const pass::PassContext& context);

}  // namespace headrace::passes
