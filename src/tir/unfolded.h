// Expressions as they are written. The builders of ir/prim_expr.h fold, and take operands of fitting dtypes for
// granted; what a user gives is made by these, to be checked (verify_expr.h) before it is folded, or never folded.
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

// Of the dtype that the operands would give if they fitted.
PrimExpr unfolded_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b);
PrimExpr unfolded_not(const PrimExpr& a);
PrimExpr unfolded_select(const PrimExpr& condition, const PrimExpr& a, const PrimExpr& b);
PrimExpr unfolded_cast(DataType dtype, const PrimExpr& value);

}  // namespace headrace::tir
