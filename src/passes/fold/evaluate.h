// What a pass may compute now, and what that gives.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// The op can be computed, and computing it does nothing else.
bool may_evaluate(const OpNode& op);

// The value of a closed expression, as an expression of constants and tuples of them: by `evaluator`, which gives one
// tensor, or where it is null by the reference interpreter. Null when the expression is an error: a program that never
// comes to it runs, and one that does tells it then.
Expr evaluate_closed(const Expr& closed, pass::ConstantEvaluator* evaluator = nullptr);

}  // namespace headrace::passes
