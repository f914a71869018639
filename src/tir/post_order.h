// Walking over expressions without recursion.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

// Returns the operands of `e` in the order of evaluation, null ones included.
std::vector<PrimExpr> operands_of(const PrimExpr& e);

// Returns every expression below `roots`, operands first, shared ones once. Null ones are left out.
std::vector<PrimExpr> post_order(const std::vector<PrimExpr>& roots);

// Returns the expressions that stand in `s` itself, not in the statements inside it.
std::vector<PrimExpr> expressions_of(const Stmt& s);
// Returns the statements directly inside `s`, null ones included except for a missing else.
std::vector<Stmt> statements_of(const Stmt& s);

}  // namespace headrace::tir
