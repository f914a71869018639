// The reference evaluation of ops whose users gave none: what computes them, run plainly. Private to user_op.cc.
//
// An op of a user is evaluated in its own dtypes, also by an interpreter that computes the rest in float64: its code
// may be of one dtype.
#pragma once

#include "lower/user_ops/user_op.h"

namespace headrace::lower {

// By the plain loops of the compute form (tir/plain_loops.h), in the interpreter of loops.
ops::EvalFn eval_by_form(ComputeRuleFn rule);
// By the user's own loops.
ops::EvalFn eval_by_loops(PrimFuncFn loops);
// By calling the global function. UserError that names it when there is none.
ops::EvalFn eval_by_function(std::string name);

}  // namespace headrace::lower
