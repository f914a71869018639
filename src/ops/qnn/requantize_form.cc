// The expression of requantized() in plain ops. Factors of constants are computed here, others by the program: the bits
// of their quotient, a float64, give multiplier and shift.
#include "ops/loops/element.h"
#include "ops/op_handles.h"
#include "ops/qnn/requantize.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/fixed_point.h"

namespace headrace::ops {

namespace {

constexpr DataType kWide = DataType::int_(64), kExact = DataType::float_(64);

// Makes the expressions of one rescaling. `from` may have a number for each index of an axis, `to` is a scalar.
class RescaleForm {
 public:
  RescaleForm(const Parameter& from, const Parameter& to, size_t rank, const Requantizing& how, const Span& span)
      : from_(from), to_(to), rank_(rank), how_(how), span_(span) {
    const auto *a = from.value.as<relay::ConstantNode>(), *b = to.value.as<relay::ConstantNode>();
    if (a == nullptr || b == nullptr) return;
    const NDArray scales = a->data.to_dense();
    shape_ = scales.shape();
    for (int64_t i = 0; i < scales.num_elements(); ++i)
      factors_.push_back(element_as_double(scales.tensor(), i) / element_as_double(b->data.to_dense().tensor(), 0));
    is_known_ = true;
  }

  bool is_one() const {
    return is_known_ && std::all_of(factors_.begin(), factors_.end(), [](double factor) { return factor == 1; });
  }

  // Returns x * factor in int32.
  Expr in_integers(const Expr& x) const {
    if (is_one()) return x;
    if (how_.rounding == Rounding::to_nearest) return to_nearest(x);
    if (is_known_ && !from_.is_vector) return multiplied_fixed(x, fixed_point_of(factors_[0]), span_);
    const Fixed fixed = fixed_factors();
    return call_with<FixedPointMultiplyPerAxisAttrs>("fixed_point_multiply_per_axis",
                                                     {x, fixed.multiplier, fixed.left, fixed.right}, span_,
                                                     [&](FixedPointMultiplyPerAxisAttrs& attrs) {
                                                       attrs.is_lshift_required = attrs.is_rshift_required = true;
                                                       if (from_.is_vector) attrs.axes = Shape{how_.axis};
                                                     });
  }

  // Returns x * factor + zero in a float, rounded to a whole number.
  Expr in_floats(const Expr& x, const Expr& zero, DataType dtype) const {
    const Expr factor = is_known_ ? constant(factors_, dtype) : cast(quotient(), dtype, span_);
    const Expr product =
        multiply(cast(x, dtype, span_), along({factor, from_.is_vector}, rank_, how_.axis, span_), span_);
    const Expr sum = is_zero(zero) ? product : add(product, cast(zero, dtype, span_), span_);
    if (how_.rounding == Rounding::upward) return unary(op::kFloor, add(sum, number(0.5, dtype), span_), span_);
    // The rest is exact and below 1, so twice the rest truncates to 1 from a half on.
    const Expr whole = unary(op::kTrunc, sum, span_);
    const Expr rest = subtract(sum, whole, span_);
    return add(whole, unary(op::kTrunc, multiply(rest, number(2, dtype), span_), span_), span_);
  }

 private:
  // The parts of a factor, int32: the multiplier and the two shifts, one of them 0.
  struct Fixed {
    Expr multiplier, left, right;
  };

  Expr number(double value, DataType dtype) const {
    return relay::make_constant(relay::make_scalar(value, dtype)->data, span_);
  }
  template <typename T>
  Expr constant(const std::vector<T>& values, DataType dtype) const {
    const NDArray data = NDArray::empty(shape_, dtype);
    for (size_t i = 0; i < values.size(); ++i)
      set_element(data.tensor(), static_cast<int64_t>(i), static_cast<double>(values[i]));
    return relay::make_constant(data, span_);
  }
  Expr combine(const OpHandle& op, const Expr& a, const Expr& b) const { return binary(op, a, b, span_); }
  Expr shifted_right(const Expr& x, const Expr& bits) const { return combine(op::kRightShift, x, bits); }

  Expr quotient() const { return divide(cast(from_.value, kExact, span_), cast(to_.value, kExact, span_), span_); }

  Fixed fixed_factors() const { return is_known_ ? known_factors() : computed_factors(); }

  Fixed known_factors() const {
    std::vector<int32_t> multipliers, left, right;
    for (const double factor : factors_) {
      const FixedPoint fixed = fixed_point_of(factor);
      multipliers.push_back(fixed.multiplier);
      left.push_back(std::max(fixed.shift, 0));
      right.push_back(std::max(-fixed.shift, 0));
    }
    return {constant(multipliers, kQuantizedSum), constant(left, kQuantizedSum), constant(right, kQuantizedSum)};
  }

  // The steps of fixed_point_of().
  Fixed computed_factors() const {
    const auto whole = [&](int64_t value) { return number(static_cast<double>(value), kWide); };
    const Expr bits =
        call_with<CastAttrs>("reinterpret", {quotient()}, span_, [](CastAttrs& attrs) { attrs.dtype = kWide; });
    const Expr below = combine(op::kBitwiseAnd, bits, whole((int64_t{1} << 52) - 1));
    const Expr mantissa = combine(op::kBitwiseOr, below, whole(int64_t{1} << 52));
    const Expr rounded = shifted_right(add(mantissa, whole(int64_t{1} << 21), span_), whole(22));
    const Expr carry = shifted_right(rounded, whole(kFixedBits));
    const Expr exponent = add(subtract(shifted_right(bits, whole(52)), whole(1022), span_), carry, span_);
    const Expr is_small = combine(op::kLess, exponent, whole(-kMostFixedShift));
    const Expr multiplier = where(is_small, whole(0), shifted_right(rounded, carry), span_);
    const auto shift = [&](const Expr& by) {
      return cast(clip(by, 0, static_cast<double>(kMostFixedShift), span_), kQuantizedSum, span_);
    };
    return {cast(multiplier, kQuantizedSum, span_), shift(exponent), shift(subtract(whole(0), exponent, span_))};
  }

  // The parts of a factor in int64: the multiplier, shifted to the left; half of the divisor; its bits.
  struct Wide {
    Expr factor, half, right;
  };

  Wide known_wide() const {
    std::vector<int64_t> factors, halves, right;
    for (const double factor : factors_) {
      const FixedPoint fixed = fixed_point_of(factor);
      factors.push_back(int64_t{fixed.multiplier} << std::max(fixed.shift, 0));
      right.push_back(kFixedBits + std::max(-fixed.shift, 0));
      halves.push_back(int64_t{1} << (right.back() - 1));
    }
    return {constant(factors, kWide), constant(halves, kWide), constant(right, kWide)};
  }

  Wide computed_wide() const {
    const Fixed fixed = computed_factors();
    const auto wide = [&](const Expr& part) { return cast(part, kWide, span_); };
    const Expr factor = combine(op::kLeftShift, wide(fixed.multiplier), wide(fixed.left));
    const auto bits = [&](int64_t more) {
      return add(wide(fixed.right), number(static_cast<double>(more), kWide), span_);
    };
    return {factor, combine(op::kLeftShift, number(1, kWide), bits(kFixedBits - 1)), bits(kFixedBits)};
  }

  // The steps of multiply_fixed() in int64, with the shift to the left in the multiplier.
  Expr to_nearest(const Expr& x) const {
    const Wide wide = is_known_ ? known_wide() : computed_wide();
    const auto each = [&](const Expr& part) { return along({part, from_.is_vector}, rank_, how_.axis, span_); };
    const Expr product = multiply(cast(x, kWide, span_), each(wide.factor), span_);
    const Expr is_negative = combine(op::kLess, product, number(0, kWide)), half = each(wide.half);
    const Expr added = where(is_negative, subtract(half, number(1, kWide), span_), half, span_);
    return cast(shifted_right(add(product, added, span_), each(wide.right)), kQuantizedSum, span_);
  }

  const Parameter &from_, &to_;
  size_t rank_;
  const Requantizing& how_;
  const Span& span_;
  bool is_known_ = false;
  Shape shape_;
  std::vector<double> factors_;
};

}  // namespace

Expr multiplied_fixed(const Expr& x, FixedPoint factor, const Span& span) {
  return call_with<FixedPointMultiplyAttrs>("fixed_point_multiply", {x}, span, [&](FixedPointMultiplyAttrs& attrs) {
    attrs.multiplier = factor.multiplier;
    attrs.shift = factor.shift;
  });
}

Expr requantized(const Expr& data, const Type& type, const ExprSteps& from, const ExprSteps& to,
                 const Requantizing& how, const Span& span) {
  const Expr sums = less_zero_point(data, type, from.zero_point, how.axis, span);
  const RescaleForm form(from.scale, to.scale, rank_of(type), how, span);
  const Expr& zero = to.zero_point.value;
  if (how.arithmetic == RescaleIn::int64) {
    const Expr scaled = form.in_integers(sums);
    return saturated(is_zero(zero) ? scaled : add(scaled, zero, span), how.out_dtype, span);
  }
  const DataType dtype = how.arithmetic == RescaleIn::float32 ? DataType::float_(32) : kExact;
  // A cast saturates, at the ends of int64 and of int32.
  return saturated(cast(form.in_floats(sums, zero, dtype), kQuantizedSum, span), how.out_dtype, span);
}

}  // namespace headrace::ops
