// Index arithmetic in the form of sums, from which schedules read where loads and stores go.
#pragma once

#include "ir/prim_expr.h"

namespace headrace::arith {

// constant + sum of coefficient * term. A term is a variable, or anything that is not a sum: a quotient, a load.
struct Affine {
  int64_t constant = 0;
  std::vector<std::pair<PrimExpr, int64_t>> terms;  // no term twice, no coefficient 0

  int64_t coefficient(const PrimVarNode* var) const;
  // Returns whether the variable occurs inside a term that is not the variable itself.
  bool hides(const PrimVarNode* var) const;
  PrimExpr to_expr() const;
};

// The values that variables take: 0 .. extent - 1.
using Extents = std::unordered_map<const PrimVarNode*, int64_t>;

// Converts an int64 expression to an equal sum. Quotients and remainders by constants are split as far as the extents
// allow, and joined again: (f / 7) * 7 + f % 7 is f.
Affine to_affine(const PrimExpr& e, const Extents& extents);

// Returns the position of `indices` in the dense buffer, in elements.
Affine linear_index(const Buffer& buffer, const Array<PrimExpr>& indices, const Extents& extents);

}  // namespace headrace::arith
