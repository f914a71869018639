#include <cmath>

#include "ops/tensor/elementwise.h"
#include "ops/op_handles.h"
#include "passes/simplify/law.h"

namespace headrace::passes::simplify {

using relay::CallNode;

namespace {

// Every value of `from` is a value of `to`.
bool is_exact_cast(DataType from, DataType to) {
  if (from == to) return true;
  if (from.is_bool()) return !to.is_bool();
  const bool same_kind = (from.is_int() && to.is_int()) || (from.is_uint() && to.is_uint() && !to.is_bool());
  if (same_kind) return from.bits() <= to.bits();
  const bool from_float = from.is_float() || from.is_bfloat16();
  return from_float && to.is_float() && to.bits() >= 32 && from.bits() < to.bits();
}

const ops::ClipAttrs* as_clip(const Expr& expr) {
  const auto* call = relay::call_of(expr, op::kClip);
  const auto* attrs = call == nullptr ? nullptr : call->attrs.as<ops::ClipAttrs>();
  return attrs != nullptr && attrs->a_min <= attrs->a_max ? attrs : nullptr;
}

// The least and the greatest number of an integer dtype.
std::pair<double, double> range_of(DataType dtype) {
  const int bits = dtype.is_bool() ? 1 : dtype.bits() - (dtype.is_int() ? 1 : 0);
  return {dtype.is_int() ? -std::ldexp(1.0, bits) : 0.0, std::ldexp(1.0, bits) - 1};
}

bool holds_range(DataType dtype, const ops::ClipAttrs& bounds) {
  const auto [least, most] = range_of(dtype);
  return is_exact(dtype) && !dtype.is_bool() && bounds.a_min >= least && bounds.a_max <= most;
}

// y = clip(x, a, b), and the integer dtypes t and u have all numbers from a to b, so that a cast to t cuts nothing off.
bool is_clipped_for(const Expr& y, DataType t, DataType u) {
  const auto* bounds = as_clip(y);
  return bounds != nullptr && holds_range(t, *bounds) && holds_range(u, *bounds);
}

// cast(x, x's dtype) == copy(x) == x; cast(cast(x, t), u) == cast(x, u) where t holds every value of x
Expr join_casts(const Site& s) {
  if (s.dtype() == dtype_of(s.arg(0))) return s.arg(0);
  const auto* inner = relay::call_of(s.arg(0), op::kCast);
  if (inner == nullptr) return {};
  const Expr data = inner->args[0];
  const DataType between = dtype_of(s.arg(0));
  if (!is_exact_cast(dtype_of(data), between) && !is_clipped_for(data, between, s.dtype())) return {};
  return s.dtype() == dtype_of(data) ? data : ops::cast(data, s.dtype(), s.span());
}

// cast_like(x, y) == cast(x, y's dtype)
Expr cast_like_as_cast(const Site& s) { return ops::cast(s.arg(0), s.dtype(), s.span()); }

// f(f(x)) == f(x): abs, sign
Expr drop_repeated_call(const Site& s) { return relay::call_of(s.arg(0), s.op()) != nullptr ? s.arg(0) : Expr(); }

// f(y) == y where y is ceil(x), floor(x), nearbyint(x), round(x) or trunc(x), and f one of them
Expr drop_rounding(const Site& s) {
  const bool is_whole =
      relay::is_call_of_any(s.arg(0), {&op::kCeil, &op::kFloor, &op::kNearbyint, &op::kRound, &op::kTrunc});
  return is_whole ? s.arg(0) : Expr();
}

// relu(y) == abs(y) == y where y is never negative: relu, abs, exp, sigmoid, sqrt, of floats
Expr drop_of_nonnegative(const Site& s) {
  const bool is_never_negative =
      relay::is_call_of_any(s.arg(0), {&op::kRelu, &op::kAbs, &op::kExp, &op::kSigmoid, &op::kSqrt});
  return is_never_negative ? s.arg(0) : Expr();
}

// relu(relu(x)) == relu(x)
Expr drop_second_relu(const Site& s) { return relay::is_call(s.arg(0), op::kRelu) ? s.arg(0) : Expr(); }

// abs(-x) == abs(x), of floats and signed integers
Expr drop_negative_in_abs(const Site& s) {
  const auto* inner = relay::call_of(s.arg(0), op::kNegative);
  return inner == nullptr ? Expr() : ops::unary(op::kAbs, inner->args[0], s.span());
}

// clip(x, a, b) == x, for integers that are never beyond a or b
Expr drop_clip(const Site& s) {
  const auto* bounds = as_clip(ref(&s.call));
  const auto [least, most] = range_of(s.dtype());
  return bounds != nullptr && bounds->a_min <= least && bounds->a_max >= most ? s.arg(0) : Expr();
}

// clip(clip(x, a, b), c, d) == clip(x, max(a, c), min(b, d)) where the two ranges meet
Expr join_clips(const Site& s) {
  const auto *inner = as_clip(s.arg(0)), *outer = as_clip(ref(&s.call));
  if (inner == nullptr || outer == nullptr) return {};
  const double low = std::max(inner->a_min, outer->a_min), high = std::min(inner->a_max, outer->a_max);
  return low <= high ? ops::clip(s.arg(0).as<CallNode>()->args[0], low, high, s.span()) : Expr();
}

// relu(clip(x, a, b)) == clip(x, max(a, 0), b) where b is not negative
Expr relu_of_clip(const Site& s) {
  const auto* inner = as_clip(s.arg(0));
  if (inner == nullptr || inner->a_max < 0) return {};
  return ops::clip(s.arg(0).as<CallNode>()->args[0], std::max(inner->a_min, 0.0), inner->a_max, s.span());
}

// clip(relu(x), a, b) == clip(x, max(a, 0), b) where b is not negative
Expr clip_of_relu(const Site& s) {
  const auto* outer = as_clip(ref(&s.call));
  const auto* inner = relay::call_of(s.arg(0), op::kRelu);
  if (inner == nullptr || outer == nullptr || outer->a_max < 0) return {};
  return ops::clip(inner->args[0], std::max(outer->a_min, 0.0), outer->a_max, s.span());
}

// maximum(x, x) == minimum(x, x) == x
Expr extremum_of_one(const Site& s) { return s.arg(0) == s.arg(1) ? s.operand(0) : Expr(); }

// maximum(x, 0) == maximum(0, x) == relu(x), of floats
Expr maximum_with_zero(const Site& s) {
  for (const size_t side : {size_t{0}, size_t{1}}) {
    if (all_elements_are(s.arg(1 - side), 0) && s.operand(side)) return ops::relu(s.arg(side), s.span());
  }
  return {};
}

// The scalar constant among the operands of an extremum, and the other operand, of the call's type therefore.
struct Bound {
  Expr data;
  double value;
};
std::optional<Bound> read_bound(const CallNode& call) {
  for (const size_t side : {size_t{1}, size_t{0}}) {
    const auto value = scalar_value(call.args[side]);
    if (value && !std::isnan(*value)) return Bound{call.args[1 - side], *value};
  }
  return std::nullopt;
}

// minimum(maximum(x, a), b) == maximum(minimum(x, b), a) == clip(x, a, b) where a is not above b, of floats
Expr bounds_as_clip(const Site& s) {
  const OpHandle& other = s.is(op::kMinimum) ? op::kMaximum : op::kMinimum;
  const auto outer = read_bound(s.call);
  const auto* inner_call = outer ? relay::call_of(outer->data, other) : nullptr;
  const auto inner = inner_call == nullptr ? std::nullopt : read_bound(*inner_call);
  if (!inner) return {};
  const double low = s.is(op::kMinimum) ? inner->value : outer->value;
  const double high = s.is(op::kMinimum) ? outer->value : inner->value;
  return low <= high ? ops::clip(inner->data, low, high, s.span()) : Expr();
}

// leaky_relu(x, alpha=1) == x
Expr drop_straight_leaky_relu(const Site& s) {
  return s.call.attrs_as<ops::LeakyReluAttrs>().alpha == 1 ? s.operand(0) : Expr();
}

constexpr Law kElementwiseLaws[] = {
    {op::kCast, join_casts},
    {op::kCastLike, cast_like_as_cast},
    {op::kCopy, join_casts},
    {op::kRelu, drop_second_relu},
    {op::kRelu, drop_of_nonnegative, LawDtypes::floats},
    {op::kRelu, relu_of_clip},
    {op::kAbs, drop_repeated_call},
    {op::kAbs, drop_of_nonnegative, LawDtypes::floats, LawShape::any, LawNumerics::zero_sign},
    {op::kAbs, drop_negative_in_abs, LawDtypes::negatable},
    {op::kSign, drop_repeated_call},
    {op::kCeil, drop_rounding},
    {op::kFloor, drop_rounding},
    {op::kNearbyint, drop_rounding},
    {op::kRound, drop_rounding},
    {op::kTrunc, drop_rounding},
    {op::kClip, drop_clip, LawDtypes::exact},
    {op::kClip, join_clips},
    {op::kClip, clip_of_relu},
    {op::kMaximum, extremum_of_one},
    {op::kMaximum, maximum_with_zero, LawDtypes::floats, LawShape::any, LawNumerics::zero_sign},
    {op::kMaximum, bounds_as_clip, LawDtypes::floats},
    {op::kMinimum, extremum_of_one},
    {op::kMinimum, bounds_as_clip, LawDtypes::floats},
    {op::kLeakyRelu, drop_straight_leaky_relu},
};

}  // namespace

std::span<const Law> elementwise_laws() { return kElementwiseLaws; }

}  // namespace headrace::passes::simplify
