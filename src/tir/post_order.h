// Walking over expressions without recursion.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

// The expressions that `e` is made of, in the order they are evaluated; null ones too.
std::vector<PrimExpr> operands_of(const PrimExpr& e);

// Every expression below `roots`, operands first, once even where several share it. Null ones are left out.
std::vector<PrimExpr> post_order(const std::vector<PrimExpr>& roots);

// The expressions that stand in `s` itself, not in the statements inside it.
std::vector<PrimExpr> expressions_of(const Stmt& s);
// The statements right inside `s`; null ones too, but for a missing else.
std::vector<Stmt> statements_of(const Stmt& s);

}  // namespace headrace::tir
