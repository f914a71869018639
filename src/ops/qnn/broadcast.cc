#include "ops/qnn/broadcast.h"

#include "ops/families.h"
#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/op_handles.h"
#include "ops/qnn/requantize.h"
#include "ops/tensor/broadcast.h"

namespace headrace::ops {

void BroadcastAttrs::fields(FieldList<BroadcastAttrs>& f) {
  f.field<&BroadcastAttrs::lhs_axis>(
       "lhs_axis",
       {.default_value = -1, .has_default = true, .doc = "the axis of lhs that its scale or zero point has"})
      .field<&BroadcastAttrs::rhs_axis>(
          "rhs_axis",
          {.default_value = -1, .has_default = true, .doc = "the axis of rhs that its scale or zero point has"});
}

namespace {

// The arguments in Relay's order.
enum BroadcastArgument : size_t {
  kLhs,
  kRhs,
  kLhsScale,
  kLhsZero,
  kRhsScale,
  kRhsZero,
  kOutScale,
  kOutZero,
};

// Checks scale and zero point of one side; its data is argument `side`, these follow at `first`.
bool check_side(const RelationInput& input, const TensorType& data, size_t first, int64_t axis, std::string_view name) {
  const TensorType scale = input.tensor(first), zero = input.tensor(first + 1);
  if (!scale || !zero) return false;
  PrimExpr size;
  if (!scale->shape.empty() || !zero->shape.empty())
    size = data->shape[normal_axis(input, axis, data->shape.size(), name)];
  return check_scale(input, first, size) && check_zero_point(input, first + 1, size);
}

Type relate_sides(const RelationInput& input) {
  const TensorType lhs = byte_argument(input, kLhs), rhs = byte_argument(input, kRhs);
  if (!lhs || !rhs) return {};
  check_same_dtype(input, lhs, rhs, "rhs");
  const auto& attrs = input.call.attrs_as<BroadcastAttrs>();
  const bool left = check_side(input, lhs, kLhsScale, attrs.lhs_axis, "lhs_axis");
  const bool right = check_side(input, rhs, kRhsScale, attrs.rhs_axis, "rhs_axis");
  const bool out = check_scale(input, kOutScale) && check_zero_point(input, kOutZero);
  if (!left || !right || !out) return {};
  return make_tensor_type(broadcast_shapes(input, lhs, rhs), lhs->dtype);
}

Type relate_sum(const RelationInput& input) {
  const Type type = relate_sides(input);
  for (const size_t scale : {kLhsScale, kRhsScale})
    check_factor(input, {input.arg_constant(scale)}, input.arg_constant(kOutScale));
  return type;
}

// Returns an axis of the operand of that rank as one of a result of `rank`, which it is aligned with at the last axis.
int64_t axis_of_result(int64_t axis, size_t own_rank, size_t rank) {
  return static_cast<int64_t>(normal_axis(axis, own_rank) + rank - own_rank);
}

// Where factors differ along an axis, it must be one axis of the result, and whole.
Type relate_mul(const RelationInput& input) {
  const Type type = relate_sides(input);
  if (!type) return {};
  check_factor(input, {input.arg_constant(kLhsScale), input.arg_constant(kRhsScale)}, input.arg_constant(kOutScale));
  const auto& attrs = input.call.attrs_as<BroadcastAttrs>();
  std::optional<int64_t> axis;
  for (const auto& [data, scale, own] :
       {std::tuple(kLhs, kLhsScale, attrs.lhs_axis), std::tuple(kRhs, kRhsScale, attrs.rhs_axis)}) {
    if (input.tensor(scale)->shape.empty()) continue;
    const int64_t mine = axis_of_result(own, input.tensor(data)->shape.size(), rank_of(type));
    if (axis && *axis != mine) input.fail("lhs_scale and rhs_scale must be of one axis of the result");
    axis = mine;
    const PrimExpr size = input.tensor(scale)->shape[0];
    if (is_int(size, 1) && !is_int(type.as<TensorTypeNode>()->shape[static_cast<size_t>(mine)], 1))
      input.fail(fmt::format("{} has 1 number for an axis that is broadcast; give a scalar",
                             input.call.as_op()->arguments[scale].name));
  }
  return type;
}

// ---- eval

using Combine = int32_t (*)(int32_t a, int32_t b);

// Returns combine(a, b) of the broadcast tensors, which are int32, as the call's result is shaped.
NDArray combined(const EvalInput& input, const NDArray& a, const NDArray& b, Combine combine) {
  const Shape shape = as_shape(input.out_types[0]->shape).value();
  const NDArray out = NDArray::empty(shape, kQuantizedSum);
  const Elements<int32_t> x(a), w(b), y(out);
  int64_t at = 0;
  const std::array<Shape, 2> strides{broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)};
  for_each_offset<2>(shape, strides, [&](const auto& place) { y.set(at++, combine(x[place[0]], w[place[1]])); });
  return out;
}

int32_t sum_of(int32_t a, int32_t b) { return wrapping_add(a, b); }
int32_t difference_of(int32_t a, int32_t b) { return wrapping_add(a, wrapping_mul(b, -1)); }
int32_t product_of(int32_t a, int32_t b) { return wrapping_mul(a, b); }

// Brings both sides to the result's scale, with a zero point of 0, and adds its zero point to their sum.
std::vector<NDArray> eval_sum(const EvalInput& input, Combine combine) {
  const auto& attrs = input.attrs<BroadcastAttrs>();
  const auto& args = input.args;
  const NDArray none = NDArray::zeros({}, kQuantizedSum);
  const auto side = [&](size_t data, size_t scale, int64_t axis) {
    return requantized(args[data], {args[scale], args[scale + 1]}, {args[kOutScale], none}, {.axis = axis});
  };
  const NDArray sums =
      combined(input, side(kLhs, kLhsScale, attrs.lhs_axis), side(kRhs, kRhsScale, attrs.rhs_axis), combine);
  return {saturated(combined(input, sums, args[kOutZero], sum_of), input.out_types[0]->dtype)};
}

// The product's scale is the product of both scales, in float32.
std::vector<NDArray> eval_mul(const EvalInput& input) {
  const auto& attrs = input.attrs<BroadcastAttrs>();
  const auto& args = input.args;
  const NDArray product = combined(input, less_zero_point(args[kLhs], args[kLhsZero], attrs.lhs_axis),
                                   less_zero_point(args[kRhs], args[kRhsZero], attrs.rhs_axis), product_of);
  const NDArray &a = args[kLhsScale], &b = args[kRhsScale];
  const NDArray& longer = a.shape().empty() ? b : a;
  const NDArray scale = NDArray::empty(longer.shape(), DataType::float_(32));
  for (int64_t i = 0; i < scale.num_elements(); ++i) {
    const auto number = [&](const NDArray& x) {
      return static_cast<float>(element_as_double(x.tensor(), x.shape().empty() ? 0 : i));
    };
    set_element(scale.tensor(), i, static_cast<double>(number(a) * number(b)));
  }
  int64_t axis = -1;
  if (!longer.shape().empty())
    axis = axis_of_result(a.shape().empty() ? attrs.rhs_axis : attrs.lhs_axis,
                          args[a.shape().empty() ? kRhs : kLhs].shape().size(), product.shape().size());
  return {requantized(product, {scale, NDArray::zeros({}, kQuantizedSum)}, {args[kOutScale], args[kOutZero]},
                      {.out_dtype = input.out_types[0]->dtype, .axis = axis})};
}

// ---- plain forms

Parameter no_zero_point(const Span& span) {
  return {relay::make_constant(NDArray::zeros({}, kQuantizedSum), span), false};
}

Expr sum_form(const relay::CallNode& call, const Array<Type>& types, const OpHandle& op) {
  const auto& attrs = call.attrs_as<BroadcastAttrs>();
  const ExprSteps to{parameter(call, types, kOutScale), no_zero_point(call.span)};
  const auto side = [&](size_t data, size_t scale, int64_t axis) {
    return requantized(call.args[data], types[data], {parameter(call, types, scale), parameter(call, types, scale + 1)},
                       to, {.axis = axis}, call.span);
  };
  const Expr sums = binary(op, side(kLhs, kLhsScale, attrs.lhs_axis), side(kRhs, kRhsScale, attrs.rhs_axis), call.span);
  const Expr zero = call.args[kOutZero];
  return saturated(is_zero(zero) ? sums : add(sums, zero, call.span), dtype_of(types[kLhs]), call.span);
}

// Returns the product of two scales; a constant where both are.
Expr product_scale(const Expr& a, const Expr& b, const Span& span) {
  const auto *x = a.as<relay::ConstantNode>(), *w = b.as<relay::ConstantNode>();
  const bool are_scalars = x != nullptr && w != nullptr && x->data.shape().empty() && w->data.shape().empty();
  if (!are_scalars) return multiply(a, b, span);
  const auto number = [](const relay::ConstantNode& scale) {
    return static_cast<float>(element_as_double(scale.data.tensor(), 0));
  };
  return relay::make_constant(relay::make_scalar(static_cast<double>(number(*x) * number(*w)))->data, span);
}

Expr mul_form(const relay::CallNode& call, const Array<Type>& types) {
  const auto& attrs = call.attrs_as<BroadcastAttrs>();
  const auto side = [&](size_t data, size_t zero, int64_t axis) {
    return less_zero_point(call.args[data], types[data], parameter(call, types, zero), axis, call.span);
  };
  const Expr product = multiply(side(kLhs, kLhsZero, attrs.lhs_axis), side(kRhs, kRhsZero, attrs.rhs_axis), call.span);
  const size_t rank = rank_of(types.back());
  const Parameter a = parameter(call, types, kLhsScale), b = parameter(call, types, kRhsScale);
  int64_t axis = -1;
  if (a.is_vector) axis = axis_of_result(attrs.lhs_axis, rank_of(types[kLhs]), rank);
  if (b.is_vector) axis = axis_of_result(attrs.rhs_axis, rank_of(types[kRhs]), rank);
  const Parameter scale{product_scale(a.value, b.value, call.span), a.is_vector || b.is_vector};
  return requantized(product, sum_type(types.back()), {scale, no_zero_point(call.span)},
                     {parameter(call, types, kOutScale), parameter(call, types, kOutZero)},
                     {.out_dtype = dtype_of(types[kLhs]), .axis = axis}, call.span);
}

// ---- registration

OpBuilder broadcast_op(const char* name, const char* what) {
  OpBuilder op(name, fmt::format("{} lhs and rhs int8 or uint8[...], broadcast as numpy does -> their dtype[...]. "
                                 "Factors are of 31 bits and a power of two; halves are rounded up, and the result is "
                                 "cut to the dtype's range.",
                                 what));
  op.arg("lhs", "Tensor", "int8 or uint8[...]: the left integers")
      .arg("rhs", "Tensor", "int8 or uint8[...], as lhs: the right integers");
  for (const char* side : {"lhs", "rhs"}) {
    op.arg(fmt::format("{}_scale", side), "Tensor",
           fmt::format("float32[] or float32[{0}'s dimension along {0}_axis]: the scale of {0}", side))
        .arg(fmt::format("{}_zero_point", side), "Tensor",
             fmt::format("int32[] or int32[{0}'s dimension along {0}_axis]: the zero point of {0}", side));
  }
  op.arg("output_scale", "Tensor", "float32[]: the scale of the result")
      .arg("output_zero_point", "Tensor", "int32[]: the zero point of the result")
      .attrs<BroadcastAttrs>()
      .fusion(FusionKind::opaque)
      .level(11);
  return op;
}

}  // namespace

void register_quantized_broadcast_ops() {
  broadcast_op("qnn.add", "The sum of two quantized tensors, each brought to the result's scale first:")
      .relation(relate_sum)
      .eval([](const EvalInput& input) { return eval_sum(input, sum_of); })
      .fact(kPlainForm,
            [](const relay::CallNode& call, const Array<Type>& types) { return sum_form(call, types, op::kAdd); });
  broadcast_op("qnn.subtract", "The difference of two quantized tensors, each brought to the result's scale first:")
      .relation(relate_sum)
      .eval([](const EvalInput& input) { return eval_sum(input, difference_of); })
      .fact(kPlainForm,
            [](const relay::CallNode& call, const Array<Type>& types) { return sum_form(call, types, op::kSubtract); });
  broadcast_op("qnn.mul", "The product of two quantized tensors, of int32, brought to the result's scale:")
      .relation(relate_mul)
      .eval(eval_mul)
      .fact(kPlainForm, mul_form);
}

}  // namespace headrace::ops
