// Gradients of functions of one operand, by their derivatives.
#include <cmath>
#include <numbers>

#include "ops/tensor/broadcast.h"
#include "ops/op_handles.h"
#include "ops/tensor/elementwise.h"
#include "passes/gradient/rule_tools.h"

namespace headrace::passes::gradient_rules {

using ops::add;
using ops::divide;
using ops::multiply;
using ops::subtract;
using ops::unary;

namespace {

Expr one(const GradientSite& s) { return scalar(1, s); }

Gradients grad_negative(const GradientSite& s) { return {negative(s.gradient)}; }
Gradients grad_copy(const GradientSite& s) { return {s.gradient}; }
Gradients grad_cast(const GradientSite& s) {
  const DataType from = tensor_of(s.arg(0)).dtype;
  return {from.is_float() ? ops::cast(s.gradient, from) : Expr()};
}
// dtype_like has no gradient, because only its dtype counts.
Gradients grad_cast_like(const GradientSite& s) { return {grad_cast(s)[0], Expr()}; }
Gradients grad_dropout(const GradientSite& s) { return {s.gradient.as<relay::TupleNode>()->items[0]}; }
// Steps have no slope, nor has what does not look at the elements.
Gradients grad_step(const GradientSite&) { return {Expr()}; }

Gradients grad_exp(const GradientSite& s) { return {multiply(s.gradient, s.result)}; }
Gradients grad_log(const GradientSite& s) { return {divide(s.gradient, s.arg(0))}; }
// log_b' = 1 / (x ln b)
Gradients grad_log2(const GradientSite& s) {
  return {divide(s.gradient, multiply(s.arg(0), scalar(std::numbers::ln2, s)))};
}
Gradients grad_log10(const GradientSite& s) {
  return {divide(s.gradient, multiply(s.arg(0), scalar(std::numbers::ln10, s)))};
}
Gradients grad_sqrt(const GradientSite& s) { return {divide(s.gradient, multiply(scalar(2, s), s.result))}; }
// rsqrt' = -1/2 rsqrt / x
Gradients grad_rsqrt(const GradientSite& s) {
  return {multiply(scalar(-0.5, s), multiply(s.gradient, divide(s.result, s.arg(0))))};
}
// tanh' = 1 - tanh^2
Gradients grad_tanh(const GradientSite& s) { return {multiply(s.gradient, subtract(one(s), square(s.result)))}; }
// sigmoid' = sigmoid (1 - sigmoid)
Gradients grad_sigmoid(const GradientSite& s) {
  return {multiply(s.gradient, multiply(s.result, subtract(one(s), s.result)))};
}
// erf' = 2 / sqrt(pi) * exp(-x^2)
Gradients grad_erf(const GradientSite& s) {
  const Expr bell = unary(op::kExp, negative(square(s.arg(0))));
  return {multiply(s.gradient, multiply(scalar(2 / std::sqrt(std::numbers::pi), s), bell))};
}

Gradients grad_sin(const GradientSite& s) { return {multiply(s.gradient, unary(op::kCos, s.arg(0)))}; }
Gradients grad_cos(const GradientSite& s) { return {negative(multiply(s.gradient, unary(op::kSin, s.arg(0))))}; }
// tan' = 1 + tan^2
Gradients grad_tan(const GradientSite& s) { return {multiply(s.gradient, add(one(s), square(s.result)))}; }
// asin' = 1 / sqrt(1 - x^2) = -acos'
Gradients grad_asin(const GradientSite& s) {
  return {multiply(s.gradient, unary(op::kRsqrt, subtract(one(s), square(s.arg(0)))))};
}
Gradients grad_acos(const GradientSite& s) { return {negative(grad_asin(s)[0])}; }
// atan' = 1 / (1 + x^2)
Gradients grad_atan(const GradientSite& s) { return {divide(s.gradient, add(one(s), square(s.arg(0))))}; }
Gradients grad_sinh(const GradientSite& s) { return {multiply(s.gradient, unary(op::kCosh, s.arg(0)))}; }
Gradients grad_cosh(const GradientSite& s) { return {multiply(s.gradient, unary(op::kSinh, s.arg(0)))}; }
// asinh' = 1 / sqrt(x^2 + 1)
Gradients grad_asinh(const GradientSite& s) {
  return {multiply(s.gradient, unary(op::kRsqrt, add(square(s.arg(0)), one(s))))};
}
// acosh' = 1 / sqrt((x - 1) (x + 1)), where x^2 - 1 would lose the digits of x near 1
Gradients grad_acosh(const GradientSite& s) {
  const Expr product = multiply(subtract(s.arg(0), one(s)), add(s.arg(0), one(s)));
  return {multiply(s.gradient, unary(op::kRsqrt, product))};
}
// atanh' = 1 / (1 - x^2)
Gradients grad_atanh(const GradientSite& s) { return {divide(s.gradient, subtract(one(s), square(s.arg(0))))}; }

Gradients grad_abs(const GradientSite& s) { return {multiply(s.gradient, unary(op::kSign, s.arg(0)))}; }
Gradients grad_relu(const GradientSite& s) { return {masked(ops::binary(op::kGreater, s.arg(0), scalar(0, s)), s)}; }
Gradients grad_leaky_relu(const GradientSite& s) {
  const Expr slope = scalar(s.call.attrs_as<ops::LeakyReluAttrs>().alpha, s);
  return {ops::where(ops::binary(op::kGreater, s.arg(0), scalar(0, s)), s.gradient, multiply(s.gradient, slope))};
}
// x where x > 0, else alpha x: alpha's is x, summed up over all but the channels.
Gradients grad_prelu(const GradientSite& s) {
  const size_t rank = tensor_of(s.result).shape.size(),
               axis = ops::normal_axis(s.call.attrs_as<ops::PReluAttrs>().axis, rank);
  const Expr is_positive = ops::binary(op::kGreater, s.arg(0), scalar(0, s));
  const Expr sloped = multiply(s.gradient, along_axis(s.arg(1), axis, rank));
  const Expr by_slope = ops::where(is_positive, zeros_as(s.result), multiply(s.gradient, s.arg(0)));
  return {ops::where(is_positive, s.gradient, sloped), summed_but(by_slope, axis)};
}
Gradients grad_clip(const GradientSite& s) {
  const auto& attrs = s.call.attrs_as<ops::ClipAttrs>();
  const Expr above = ops::binary(op::kGreaterEqual, s.arg(0), scalar(attrs.a_min, s));
  const Expr below = ops::binary(op::kLessEqual, s.arg(0), scalar(attrs.a_max, s));
  return {masked(ops::binary(op::kLogicalAnd, above, below), s)};
}

constexpr GradientRow kUnaryRows[] = {
    {op::kAbs, grad_abs},           {op::kAcos, grad_acos},          {op::kAcosh, grad_acosh},
    {op::kCheckpoint, grad_copy},   {op::kStopFusion, grad_copy},    {op::kAsin, grad_asin},
    {op::kAsinh, grad_asinh},       {op::kAtan, grad_atan},          {op::kAtanh, grad_atanh},
    {op::kCast, grad_cast},         {op::kCastLike, grad_cast_like}, {op::kCeil, grad_step},
    {op::kClip, grad_clip},         {op::kCopy, grad_copy},          {op::kCos, grad_cos},
    {op::kCosh, grad_cosh},         {op::kDeviceCopy, grad_copy},    {op::kErf, grad_erf},
    {op::kExp, grad_exp},           {op::kFastErf, grad_erf},        {op::kFastExp, grad_exp},
    {op::kFastTanh, grad_tanh},     {op::kFloor, grad_step},         {op::kLog, grad_log},
    {op::kLog10, grad_log10},       {op::kLog2, grad_log2},          {op::kNearbyint, grad_step},
    {op::kNegative, grad_negative}, {op::kDropout, grad_dropout},    {op::kLeakyRelu, grad_leaky_relu},
    {op::kPrelu, grad_prelu},       {op::kRelu, grad_relu},          {op::kOnDevice, grad_copy},
    {op::kOnesLike, grad_step},     {op::kRound, grad_step},         {op::kRsqrt, grad_rsqrt},
    {op::kSigmoid, grad_sigmoid},   {op::kSign, grad_step},          {op::kSin, grad_sin},
    {op::kSinh, grad_sinh},         {op::kSqrt, grad_sqrt},          {op::kTan, grad_tan},
    {op::kTanh, grad_tanh},         {op::kTrunc, grad_step},         {op::kZerosLike, grad_step},
};

}  // namespace

std::span<const GradientRow> unary_gradients() { return kUnaryRows; }

}  // namespace headrace::passes::gradient_rules
