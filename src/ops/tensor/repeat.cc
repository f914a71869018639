#include "ops/tensor/repeat.h"

#include "arith/canonical.h"
#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/move.h"

namespace headrace::ops {

void BroadcastToAttrs::fields(FieldList<BroadcastToAttrs>& f) {
  f.field<&BroadcastToAttrs::shape>("shape",
                                    {.default_value = Shape(), .has_default = true, .doc = "the result's shape"});
}

void TileAttrs::fields(FieldList<TileAttrs>& f) {
  f.field<&TileAttrs::reps>(
      "reps", {.default_value = Shape(), .has_default = true, .doc = "copies along each axis, aligned at the last"});
}

void RepeatAttrs::fields(FieldList<RepeatAttrs>& f) {
  f.field<&RepeatAttrs::repeats>("repeats", {.doc = "copies of each element, side by side"})
      .field<&RepeatAttrs::axis>("axis", {.default_value = 0, .has_default = true, .doc = "the axis to repeat along"});
}

void ReverseAttrs::fields(FieldList<ReverseAttrs>& f) {
  f.field<&ReverseAttrs::axis>("axis", {.doc = "the axis to reverse"});
}

namespace {

using relay::make_call;

Type broadcast_type(const RelationInput& input, const TensorType& data, const Dims& target) {
  if (data->shape.size() > target.size())
    input.fail(fmt::format("{} has more dimensions than {}", show(data), show_dims(Array<PrimExpr>(target))));
  const size_t missing = target.size() - data->shape.size();
  for (size_t i = missing; i < target.size(); ++i) {
    const PrimExpr mine = data->shape[i - missing];
    if (!is_int(mine, 1) && arith::is_unequal(mine, target[i]) && as_int(mine) && as_int(target[i]))
      input.fail(fmt::format("{} cannot be broadcast to {}: axis {} is {}", show(data),
                             show_dims(Array<PrimExpr>(target)), i, to_string(mine)));
  }
  for (const PrimExpr& dim : target) {
    if (as_int(dim) && *as_int(dim) < 0)
      input.fail(fmt::format("shape has a negative size: {}", show_dims(Array<PrimExpr>(target))));
  }
  return make_tensor_type(Array<PrimExpr>(target), data->dtype);
}

Type relate_broadcast_to(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  const auto target = requested_shape(input, input.call.attrs_as<BroadcastToAttrs>().shape, "shape");
  return data && target ? broadcast_type(input, data, *target) : Type();
}

Type relate_broadcast_to_like(const RelationInput& input) {
  const TensorType data = input.tensor(0), like = input.tensor(1);
  return data && like ? broadcast_type(input, data, like->shape.to_vector()) : Type();
}

std::vector<NDArray> eval_broadcast(const EvalInput& input) {
  NDArray result = input.make_output();
  const Shape strides = broadcast_strides(input.args[0].shape(), result.shape());
  move_elements(input.args[0], result, [&](const Shape& index) { return dot(index, strides); });
  return {result};
}

Type relate_tile(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  auto reps = requested_shape(input, input.call.attrs_as<TileAttrs>().reps, "reps");
  if (!data || !reps) return {};
  Dims dims = data->shape.to_vector();
  const PrimExpr one = make_int(1);
  const size_t rank = std::max(dims.size(), reps->size());
  dims.insert(dims.begin(), rank - dims.size(), one);
  reps->insert(reps->begin(), rank - reps->size(), one);
  for (size_t i = 0; i < rank; ++i) {
    const auto times = as_int((*reps)[i]);
    if (times && *times < 0) input.fail(fmt::format("reps has the negative count {}", *times));
    dims[i] = result_dim(input, dims[i] * (*reps)[i]);
  }
  return make_tensor_type(Array<PrimExpr>(dims), data->dtype);
}

std::vector<NDArray> eval_tile(const EvalInput& input) {
  NDArray result = input.make_output();
  const Shape& shape = input.args[0].shape();
  const Shape strides = dense_strides(shape);
  const size_t missing = result.shape().size() - shape.size();
  move_elements(input.args[0], result, [&](const Shape& index) {
    int64_t offset = 0;
    for (size_t i = 0; i < shape.size(); ++i) offset += index[i + missing] % shape[i] * strides[i];
    return offset;
  });
  return {result};
}

Type relate_repeat(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  const auto& attrs = input.call.attrs_as<RepeatAttrs>();
  if (attrs.repeats < 0) input.fail(fmt::format("repeats is {}, expected at least 0", attrs.repeats));
  const size_t axis = normal_axis(input, attrs.axis, data->shape.size());
  Array<PrimExpr> dims = data->shape;
  dims.set(axis, result_dim(input, dims[axis] * make_int(attrs.repeats)));
  return make_tensor_type(dims, data->dtype);
}

std::vector<NDArray> eval_repeat(const EvalInput& input) {
  const auto& attrs = input.attrs<RepeatAttrs>();
  const size_t axis = normal_axis(attrs.axis, input.args[0].shape().size());
  const Shape strides = dense_strides(input.args[0].shape());
  NDArray result = input.make_output();
  move_elements(input.args[0], result, [&](const Shape& index) {
    return dot(index, strides) - (index[axis] - index[axis] / attrs.repeats) * strides[axis];
  });
  return {result};
}

Type relate_reverse(const RelationInput& input) {
  const TensorType data = input.tensor(0);
  if (!data) return {};
  normal_axis(input, input.call.attrs_as<ReverseAttrs>().axis, data->shape.size());
  return data;
}

std::vector<NDArray> eval_reverse(const EvalInput& input) {
  const Shape& shape = input.args[0].shape();
  const size_t axis = normal_axis(input.attrs<ReverseAttrs>().axis, shape.size());
  const Shape strides = dense_strides(shape);
  NDArray result = input.make_output();
  move_elements(input.args[0], result, [&](const Shape& index) {
    return dot(index, strides) + (shape[axis] - 1 - 2 * index[axis]) * strides[axis];
  });
  return {result};
}

}  // namespace

void register_repeat_ops() {
  moving(OpBuilder("broadcast_to", "Repeated along axes of size 1 and new leading axes, to a given shape.")
             .arg("data", "Tensor", "T[...]: the tensor to repeat")
             .arg("shape", "Tensor", "int[rank of the result], optional: shape as a tensor")
             .any_args()
             .attrs<BroadcastToAttrs>(),
         relate_broadcast_to, eval_broadcast, FusionKind::broadcast)
      .fact(kRepeats, {});
  moving(OpBuilder("broadcast_to_like", "Broadcast to the shape of broadcast_type.")
             .arg("data", "Tensor", "T[...]: the tensor to repeat")
             .arg("broadcast_type", "Tensor", "[...]: only its shape counts"),
         relate_broadcast_to_like, eval_broadcast, FusionKind::broadcast)
      .fact(kRepeats, {.type_operand = 1});
  moving(OpBuilder("tile", "The whole tensor repeated reps times along each axis.")
             .arg("data", "Tensor", "T[...]: the tensor to repeat")
             .arg("reps", "Tensor", "int[axes], optional: reps as a tensor")
             .any_args()
             .attrs<TileAttrs>(),
         relate_tile, eval_tile)
      .fact(kRepeats, {});
  moving(OpBuilder("repeat", "Each element repeated along an axis.")
             .arg("data", "Tensor", "T[...]: the tensor to repeat")
             .attrs<RepeatAttrs>(),
         relate_repeat, eval_repeat)
      .fact(kRepeats, {});
  moving(OpBuilder("reverse", "In the opposite order along an axis.")
             .arg("data", "Tensor", "T[...]: the tensor to reverse")
             .attrs<ReverseAttrs>(),
         relate_reverse, eval_reverse)
      .keeps_layout_but_axis<ReverseAttrs>();
}

Expr broadcast_to(Expr data, Shape shape, Span span) {
  return call_with<BroadcastToAttrs>("broadcast_to", {data}, span, [&](auto& a) { a.shape = shape; });
}
Expr broadcast_to(Expr data, Expr shape, Span span) {
  return call_with<BroadcastToAttrs>("broadcast_to", {data, shape}, span, [](auto&) {});
}
Expr broadcast_to_like(Expr data, Expr like, Span span) {
  return make_call("broadcast_to_like", {data, like}, {}, span);
}
Expr tile(Expr data, Shape reps, Span span) {
  return call_with<TileAttrs>("tile", {data}, span, [&](auto& a) { a.reps = reps; });
}
Expr tile(Expr data, Expr reps, Span span) {
  return call_with<TileAttrs>("tile", {data, reps}, span, [](auto&) {});
}
Expr repeat(Expr data, int64_t repeats, int64_t axis, Span span) {
  return call_with<RepeatAttrs>("repeat", {data}, span, [&](auto& a) { a.repeats = repeats, a.axis = axis; });
}
Expr reverse(Expr data, int64_t axis, Span span) {
  return call_with<ReverseAttrs>("reverse", {data}, span, [&](auto& a) { a.axis = axis; });
}

}  // namespace headrace::ops
