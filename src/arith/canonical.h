// The canonical form of integer expressions, and what it proves of symbolic dimensions: equality, exact division.
//
// The form is a sum of products of atoms with integer coefficients; an atom is a variable or an operation that is no
// sum or product (floor_div, min, ...) of canonical operands. Expressions of more than kMaxSize nodes, expressions that
// contain `?` and coefficients past int64 have none: nothing is proved of them.
#pragma once

#include "ir/prim_expr.h"

namespace headrace::arith {

inline constexpr int64_t kMaxSize = 512;

// The canonical expression equal to `e`, or nothing.
std::optional<PrimExpr> canonical(const PrimExpr& e);
// As above; `?` where `e` has no canonical form. A dimension made by this never outgrows a bounded size.
PrimExpr simplify_dim(const PrimExpr& e);
// a == b for all values of the variables, and a != b for all values. Both false: not known.
bool is_equal(const PrimExpr& a, const PrimExpr& b);
bool is_unequal(const PrimExpr& a, const PrimExpr& b);
// q with q * b == a for all values, or nothing.
std::optional<PrimExpr> divide_exactly(const PrimExpr& a, const PrimExpr& b);
// The canonical product of dimensions; `?` when it has none.
PrimExpr product(const Array<PrimExpr>& dims);

}  // namespace headrace::arith
