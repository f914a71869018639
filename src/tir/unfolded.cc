#include "tir/unfolded.h"

namespace headrace::tir {

PrimExpr unfolded_binary(BinaryOp op, const PrimExpr& a, const PrimExpr& b) {
  const bool gives_bool = is_comparison(op) || is_logical(op);
  return make_unfolded<BinaryNode>(gives_bool ? DataType::bool_(a->dtype.lanes()) : a->dtype, [&](BinaryNode& node) {
    node.op = op;
    node.a = a;
    node.b = b;
  });
}

PrimExpr unfolded_not(const PrimExpr& a) {
  return make_unfolded<NotNode>(a->dtype, [&](NotNode& node) { node.a = a; });
}

PrimExpr unfolded_select(const PrimExpr& condition, const PrimExpr& a, const PrimExpr& b) {
  return make_unfolded<SelectNode>(a->dtype, [&](SelectNode& node) {
    node.condition = condition;
    node.true_value = a;
    node.false_value = b;
  });
}

PrimExpr unfolded_cast(DataType dtype, const PrimExpr& value) {
  return make_unfolded<CastNode>(dtype, [&](CastNode& node) { node.value = value; });
}

}  // namespace headrace::tir
