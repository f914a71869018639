// Evaluates closed expressions for passes.
#pragma once

#include "interp/evaluate.h"
#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// Returns whether the op can be evaluated, and evaluating it does nothing else.
bool may_evaluate(const OpNode& op);

// Returns the value of a closed expression, as an expression of constants and tuples of them. Null where an op refuses
// its operands (a program that never comes to it runs, and one that does reports it then), and where the budget does
// not suffice, which is reported to `context.note` as a note of `pass`.
Expr evaluate_closed(const Expr& closed, interp::ConstantBudget& budget, const pass::PassContext& context,
                     std::string_view pass);

// Reports to `context.note` that `pass` leaves an expression of constants as it is, and `why`: HR_REASON_FOLD_LIMIT.
void note_left(const Expr& closed, std::string_view why, const pass::PassContext& context, std::string_view pass);

// Returns the bytes of all constants in it, each counted once.
int64_t constant_bytes(const Expr& root);

}  // namespace headrace::passes
