#include "passes/simplify/simplify_inference.h"

#include <algorithm>

#include "ops/axis.h"
#include "ops/nn/group_norm.h"
#include "ops/nn/normalization.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/shape.h"
#include "passes/rewrite/effects.h"
#include "passes/rewrite/for_each_function.h"
#include "relay/function_attrs.h"
#include "relay/match.h"
#include "relay/visit.h"

namespace headrace::passes {

using relay::CallNode;

namespace {

// Arithmetic in the place of one call.
struct Writer {
  const CallNode& call;
  const TensorTypeNode& type;  // type of its data and its result

  Writer(const CallNode& call, const TensorTypeNode& type) : call(call), type(type) {}

  size_t rank() const { return type.shape.size(); }
  Expr unary(const OpHandle& op, const Expr& x) const { return ops::unary(op, x, call.span); }
  Expr binary(const OpHandle& op, const Expr& a, const Expr& b) const { return ops::binary(op, a, b, call.span); }
  Expr number(double value, DataType dtype) const {
    const relay::Constant scalar = relay::make_scalar(value, dtype);
    return relay::make_constant(scalar->data, call.span);
  }
  // The vector `values` in the shape that broadcasts along `axis` of the data.
  Expr along(const Expr& values, size_t axis) const {
    const auto trailing = static_cast<int64_t>(rank() - axis - 1);
    return trailing == 0 ? values : ops::expand_dims(values, 1, trailing, call.span);
  }
  // (x - mean) / sqrt(variance + epsilon), of x's elements along `axes`.
  Expr normalized(const Expr& x, const Shape& axes, double epsilon) const {
    const Expr mean = ops::reduce(op::kMean, x, axes, true, false, call.span);
    const Expr variance = ops::variance(x, mean, axes, true, false, call.span);
    const Expr deviation = unary(op::kSqrt, binary(op::kAdd, variance, number(epsilon, type.dtype)));
    return binary(op::kDivide, binary(op::kSubtract, x, mean), deviation);
  }
  // normal * gamma + beta, as far as the attributes want it.
  template <typename A>
  Expr scaled(Expr normal, const A& attrs, size_t axis) const {
    if (attrs.scale) normal = binary(op::kMultiply, normal, along(call.args[1], axis));
    return attrs.center ? binary(op::kAdd, normal, along(call.args[2], axis)) : normal;
  }
};

// With `as_in_relay` 1 / sqrt and -m * s, which round as Relay's do.
Expr batch_norm(const Writer& writer, bool as_in_relay) {
  const CallNode& call = writer.call;
  const auto& attrs = call.attrs_as<ops::BatchNormAttrs>();
  const size_t axis = ops::normal_axis(attrs.axis, writer.rank());
  const Expr data = call.args[0], gamma = call.args[1], beta = call.args[2], mean = call.args[3], var = call.args[4];
  const DataType dtype = writer.type.dtype;
  const Expr square = writer.binary(op::kAdd, var, writer.number(attrs.epsilon, dtype));
  Expr scale = as_in_relay ? writer.binary(op::kDivide, writer.number(1, dtype), writer.unary(op::kSqrt, square))
                           : writer.unary(op::kRsqrt, square);
  if (attrs.scale) scale = writer.binary(op::kMultiply, scale, gamma);
  Expr shift = as_in_relay ? writer.binary(op::kMultiply, writer.unary(op::kNegative, mean), scale)
                           : writer.unary(op::kNegative, writer.binary(op::kMultiply, mean, scale));
  if (attrs.center) shift = writer.binary(op::kAdd, shift, beta);
  return writer.binary(op::kAdd, writer.binary(op::kMultiply, data, writer.along(scale, axis)),
                       writer.along(shift, axis));
}

Expr unpack_batch_norm(const Writer& writer) { return batch_norm(writer, false); }
Expr unpack_batch_norm_as_in_relay(const Writer& writer) { return batch_norm(writer, true); }

Expr unpack_layer_norm(const Writer& writer) {
  const auto& attrs = writer.call.attrs_as<ops::LayerNormAttrs>();
  const size_t axis = ops::normal_axis(attrs.axis, writer.rank());
  const Expr normal = writer.normalized(writer.call.args[0], {static_cast<int64_t>(axis)}, attrs.epsilon);
  return writer.scaled(normal, attrs, axis);
}

// All axes below `rank` but the batch and that one.
Shape axes_beside(size_t axis, size_t rank) {
  Shape axes;
  for (size_t i = 1; i < rank; ++i) {
    if (i != axis) axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

Expr unpack_instance_norm(const Writer& writer) {
  const auto& attrs = writer.call.attrs_as<ops::InstanceNormAttrs>();
  const size_t axis = ops::normal_axis(attrs.axis, writer.rank());
  const Expr normal = writer.normalized(writer.call.args[0], axes_beside(axis, writer.rank()), attrs.epsilon);
  return writer.scaled(normal, attrs, axis);
}

// In newshape, 0 keeps a dimension, -4 splits one by the next two sizes, -3 merges two.
Expr unpack_group_norm(const Writer& writer) {
  const auto& attrs = writer.call.attrs_as<ops::GroupNormAttrs>();
  const size_t axis = ops::normal_axis(attrs.axis, writer.rank());
  Shape split(axis, 0), merge(axis, 0);
  for (const int64_t size : {int64_t{-4}, attrs.num_groups, int64_t{-1}}) split.push_back(size);
  merge.push_back(-3);
  for (size_t i = axis + 1; i < writer.rank(); ++i) {
    split.push_back(0);
    merge.push_back(0);
  }
  const Expr groups = ops::reshape(writer.call.args[0], split, false, writer.call.span);
  const Expr normal = writer.normalized(groups, axes_beside(axis, writer.rank() + 1), attrs.epsilon);
  return writer.scaled(ops::reshape(normal, merge, false, writer.call.span), attrs, axis);
}

Expr unpack_l2_normalize(const Writer& writer) {
  const auto& attrs = writer.call.attrs_as<ops::L2NormalizeAttrs>();
  const Expr x = writer.call.args[0];
  const std::optional<Shape> axes = attrs.axis.empty() ? std::nullopt : std::optional(attrs.axis);
  const Expr sum = ops::reduce(op::kSum, writer.binary(op::kMultiply, x, x), axes, true, false, writer.call.span);
  const Expr least = writer.binary(op::kMaximum, sum, writer.number(attrs.eps, writer.type.dtype));
  return writer.binary(op::kDivide, x, writer.unary(op::kSqrt, least));
}

using Unpack = Expr (*)(const Writer&);

// Unpacks a norm of float16 or bfloat16 in float32, as the ops compute: squares, small epsilons and the reciprocals of
// small deviations leave the range of float16.
Expr unpack_wide(const CallNode& call, const TensorTypeNode& type, Unpack unpack) {
  if (type.dtype.bits() != 16) return unpack(Writer(call, type));
  const DataType wide = DataType::float_(32);
  Array<Expr> args;
  for (const Expr& arg : call.args) args.push_back(ops::cast(arg, wide, call.span));
  const auto wide_call = copy_with(call, [&](CallNode& copy) { copy.args = args; });
  const TensorType wide_type = make_tensor_type(type.shape, wide);
  return ops::cast(unpack(Writer(*wide_call.as<CallNode>(), *wide_type)), type.dtype, call.span);
}

// Returns a norm of its data's own statistics as arithmetic; `call` itself for any other op.
Expr unpack_norm(const CallNode& call, const TensorTypeNode& type) {
  static constexpr std::pair<const OpHandle*, Unpack> kNorms[] = {{&op::kLayerNorm, unpack_layer_norm},
                                                                  {&op::kInstanceNorm, unpack_instance_norm},
                                                                  {&op::kGroupNorm, unpack_group_norm},
                                                                  {&op::kL2Normalize, unpack_l2_normalize}};
  for (const auto& [op, unpack] : kNorms) {
    if (relay::is_call(call, *op)) return unpack_wide(call, type, unpack);
  }
  return ref(&call);
}

// `before` carries the types, `after` the operands as rewritten so far. The result has the type of the data.
Expr simplify_call(const Expr& before, const Expr& after, bool unpack_norms) {
  const auto* type = relay::tensor_type_of(before);
  const auto* call = relay::op_call(after);
  if (call != nullptr && unpack_norms && type != nullptr) {
    const auto is_empty = [](const PrimExpr& dim) { return is_int(dim, 0); };
    const bool has_mean = std::none_of(type->shape.begin(), type->shape.end(), is_empty);
    return has_mean ? unpack_norm(*call, *type) : after;
  }
  const auto* item = after.as<relay::TupleGetItemNode>();
  if (item == nullptr || item->index != 0) return after;
  if (const auto* dropout = relay::call_of(item->tuple, op::kDropout)) return dropout->args[0];
  const auto* norm = relay::call_of(item->tuple, op::kBatchNorm);
  if (type == nullptr || norm == nullptr) return after;
  return unpack_wide(*norm, *type, unpack_norms ? unpack_batch_norm_as_in_relay : unpack_batch_norm);
}

}  // namespace

IRModule simplify_inference(const IRModule& module, bool unpack_norms) {
  const InOrder ordered = in_order(module);
  const Effects effects = ordered.writes();
  return rewrite_bodies(ordered.module, [&](const Expr& body) {
    return relay::rewrite_post_order(body, relay::is_entered, [&](const Expr& before, const Expr& after) {
      return effects.of(before) ? after : simplify_call(before, after, unpack_norms);
    });
  });
}

}  // namespace headrace::passes
