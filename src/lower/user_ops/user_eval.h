// Reference evaluation of user ops that come without one: runs their compute form, loops or function plainly. Private
// to user_op.cc.
//
// A user's op is evaluated in its own dtypes, even by an interpreter that computes the rest in float64, because its
// code may support one dtype only.
#pragma once

#include "lower/user_ops/user_op.h"

namespace headrace::lower {

// Makes an evaluation that interprets the plain loops of the compute form (tir/plain_loops.h).
ops::EvalFn eval_by_form(ComputeRuleFn rule);
// Makes an evaluation that interprets the user's loops.
ops::EvalFn eval_by_loops(PrimFuncFn loops);
// Makes an evaluation that calls the global function. UserError at the call that names it when there is none.
ops::EvalFn eval_by_function(std::string name);

}  // namespace headrace::lower
