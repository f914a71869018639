// Canonical form of integer expressions. It proves facts about symbolic dimensions: equality, exact division, the
// solution of an equation.
//
// The form is a sum of products of atoms with integer coefficients. An atom is a variable, or an operation other than
// sum and product (floor_div, min, ...) whose operands are canonical. Expressions of more than kMaxSize nodes,
// expressions that contain `?`, and expressions with coefficients past int64 have no canonical form: nothing is proved
// of them. Variables are dimensions and so at least 0: max(n, 0) becomes n.
#pragma once

#include "ir/type.h"

namespace headrace::arith {

inline constexpr int64_t kMaxSize = 512;

// Returns the canonical expression equal to `e`, or nothing.
std::optional<PrimExpr> canonical(const PrimExpr& e);
// Returns the canonical form of a dimension, or `?` when it has none. The size of dimensions made by this function is
// bounded.
PrimExpr simplify_dim(const PrimExpr& e);
// Return whether a == b, or a != b, for all values of the variables. Both false: not known.
bool is_equal(const PrimExpr& a, const PrimExpr& b);
bool is_unequal(const PrimExpr& a, const PrimExpr& b);
// Returns q with q * b == a for all values, or nothing.
std::optional<PrimExpr> divide_exactly(const PrimExpr& a, const PrimExpr& b);
// The solution of a == b for the dimension x, where a - b is c * x + d with an integer c and a d without x.
struct Solution {
  PrimExpr value;        // null when it says nothing
  bool is_none = false;  // no x of at least 0 makes them equal, whatever the other variables are
};
Solution solve_for(const PrimVarNode* x, const PrimExpr& a, const PrimExpr& b);
// Returns the canonical product of dimensions; `?` when it has none.
PrimExpr product(const Array<PrimExpr>& dims);
// Returns the number of a tensor's elements; UserError where 64 bits do not hold it.
PrimExpr size_of(const TensorType& type);

}  // namespace headrace::arith
