#include "passes/simplify/simplify_inference.h"

#include "ops/nn/normalization.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

bool is_call_of(const CallNode* call, std::string_view op) {
  return call != nullptr && call->as_op() != nullptr && call->as_op()->name == op;
}

// The vector `values` of the axis' length in the shape that broadcasts along `axis` of a tensor of `rank` dimensions.
Expr along_axis(const Expr& values, size_t axis, size_t rank) {
  const auto trailing = static_cast<int64_t>(rank - axis - 1);
  return trailing == 0 ? values : ops::expand_dims(values, 1, trailing);
}

Expr unpack_batch_norm(const CallNode& call, const TensorTypeNode& data_type) {
  const auto& attrs = call.attrs_as<ops::BatchNormAttrs>();
  const size_t rank = data_type.shape.size();
  const size_t axis = ops::normal_axis(attrs.axis, rank);
  const Expr data = call.args[0], gamma = call.args[1], beta = call.args[2], mean = call.args[3], var = call.args[4];
  const auto* statistics = var->has_checked_type() ? var->checked_type().as<TensorTypeNode>() : nullptr;
  const DataType dtype = statistics != nullptr ? statistics->dtype : data_type.dtype;
  Expr scale = ops::unary("rsqrt", ops::add(var, relay::make_scalar(attrs.epsilon, dtype), call.span), call.span);
  if (attrs.scale) scale = ops::multiply(scale, gamma, call.span);
  Expr shift = ops::unary("negative", ops::multiply(mean, scale, call.span), call.span);
  if (attrs.center) shift = ops::add(shift, beta, call.span);
  const Expr scaled = ops::multiply(data, along_axis(scale, axis, rank), call.span);
  return ops::add(scaled, along_axis(shift, axis, rank), call.span);
}

// `before` carries the types, `after` the operands as rewritten so far.
Expr simplify_call(const Expr& before, const Expr& after) {
  const auto* item = after.as<relay::TupleGetItemNode>();
  if (item == nullptr || item->index != 0) return after;
  const auto* call = item->tuple.as<CallNode>();
  if (is_call_of(call, "nn.dropout")) return call->args[0];
  if (!is_call_of(call, "nn.batch_norm")) return after;
  // The result has the type of the data.
  if (!before->has_checked_type()) return after;
  const auto* data_type = before->checked_type().as<TensorTypeNode>();
  return data_type == nullptr ? after : unpack_batch_norm(*call, *data_type);
}

}  // namespace

IRModule simplify_inference(const IRModule& module) {
  const Effects effects(module);
  return rewrite_bodies(module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, [&](const Expr& before, const Expr& after) {
      return effects.of(before) ? after : simplify_call(before, after);
    });
  });
}

}  // namespace headrace::passes
