// Builders that fold nothing. The builders of ir/prim_expr.h fold and assume operands of fitting dtypes. Expressions
// from users are made by these functions, so that they can be checked (verify_expr.h) before they are folded, or kept
// as written.
#pragma once

#include "tir/stmt.h"

namespace headrace::tir {

template <typename Node>
Ref<Node> make_unfolded(DataType dtype, const std::function<void(Node&)>& fill) {
  auto node = make_object<Node>();
  node->dtype = dtype;
  fill(*node);
  return node;
}

// Returns the operation with the dtype that fitting operands would give.
PrimExpr unfolded_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b);
PrimExpr unfolded_not(const PrimExpr& a);
PrimExpr unfolded_select(const PrimExpr& condition, const PrimExpr& a, const PrimExpr& b);
PrimExpr unfolded_cast(DataType dtype, const PrimExpr& value);

}  // namespace headrace::tir
