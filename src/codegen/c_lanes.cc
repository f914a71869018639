#include "codegen/c_lanes.h"

#include "base/error.h"
#include "base/stack.h"

namespace headrace::codegen {

namespace {

class Lanes {
 public:
  Lanes(PrimExpr lane, LaneValues values) : lane_(std::move(lane)), values_(std::move(values)) {}

  PrimExpr of(const PrimExpr& e) {
    if (e->dtype.lanes() == 1) return e;
    if (const auto made = made_.find(e.get()); made != made_.end()) return made->second;
    if (is_stack_low()) throw_user_error("a kernel has an expression of too many operations within each other");
    return made_[e.get()] = made_of(e);
  }

 private:
  PrimExpr made_of(const PrimExpr& e) {
    const DataType dtype = e->dtype.element();
    if (const auto* imm = e.as<IntImmNode>()) return make_int(imm->value, dtype);
    if (const auto* real = e.as<FloatImmNode>()) return make_float(real->value, dtype);
    if (const auto* node = e.as<BinaryNode>()) return make_binary(node->op, of(node->a), of(node->b));
    if (const auto* node = e.as<NotNode>()) return make_not(of(node->a));
    if (const auto* node = e.as<SelectNode>())
      return make_select(of(node->condition), of(node->true_value), of(node->false_value));
    if (const auto* node = e.as<CastNode>()) return make_cast(dtype, of(node->value));
    if (const auto* node = e.as<RampNode>()) return node->base + node->stride * make_cast(dtype, lane_);
    if (const auto* node = e.as<BroadcastNode>()) return node->value;
    if (const auto* node = e.as<BufferLoadNode>()) {
      Array<PrimExpr> indices;
      for (const PrimExpr& index : node->indices) indices.push_back(of(index));
      return make_load(node->buffer, indices);
    }
    if (const auto* node = e.as<IntrinsicCallNode>()) return call(*node, dtype);
    if (const auto* node = e.as<PrimLetNode>()) return let(*node);
    const auto value = values_.find(e.as<PrimVarNode>());
    HEADRACE_CHECK(value != values_.end(), "the vector '{}' has no lanes", to_string(e));
    return value->second;
  }

  PrimExpr call(const IntrinsicCallNode& node, DataType dtype) {
    if (node.intrinsic == Intrinsic::vector_load) {
      const PrimExpr step = make_cast(node.args[1]->dtype, lane_);
      return make_intrinsic(node.intrinsic, dtype, {node.args[0], node.args[1] + step});
    }
    Array<PrimExpr> args;
    for (const PrimExpr& arg : node.args) args.push_back(of(arg));
    return make_intrinsic(node.intrinsic, dtype, args);
  }

  PrimExpr let(const PrimLetNode& node) {
    if (node.var->dtype.lanes() == 1) return make_prim_let(node.var, node.value, of(node.body));
    const PrimVar var = make_prim_var(node.var->name_hint, node.var->dtype.element());
    const PrimExpr value = of(node.value);
    values_[node.var.get()] = var;
    return make_prim_let(var, value, of(node.body));
  }

  PrimExpr lane_;
  LaneValues values_;
  std::unordered_map<const PrimExprNode*, PrimExpr> made_;
};

}  // namespace

PrimExpr lane_of(const PrimExpr& e, const PrimExpr& lane, const LaneValues& values) {
  return Lanes(lane, values).of(e);
}

}  // namespace headrace::codegen
