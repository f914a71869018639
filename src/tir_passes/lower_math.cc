#include "tir_passes/lower_math.h"

#include <limits>

#include "tir/rewrite.h"

namespace headrace::tir_passes {

namespace {

// float32 expressions with operators; a number takes the lanes of its neighbour.
struct Real {
  PrimExpr e;

  PrimExpr number(double value) const { return make_const(value, e->dtype); }
  Real like(double value) const { return {number(value)}; }
  DataType bits_type() const { return DataType::int_(32, e->dtype.lanes()); }
  PrimExpr bits() const { return make_intrinsic(Intrinsic::reinterpret, bits_type(), {e}); }
};

Real operator+(const Real& a, const Real& b) { return {a.e + b.e}; }
Real operator-(const Real& a, const Real& b) { return {a.e - b.e}; }
Real operator*(const Real& a, const Real& b) { return {a.e * b.e}; }
Real operator/(const Real& a, const Real& b) { return {make_binary(BinaryOp::div, a.e, b.e)}; }
Real operator+(const Real& a, double b) { return a + a.like(b); }
Real operator-(const Real& a, double b) { return a - a.like(b); }
Real operator*(const Real& a, double b) { return a * a.like(b); }
PrimExpr operator<(const Real& a, double b) { return make_binary(BinaryOp::lt, a.e, a.number(b)); }

Real choose(const PrimExpr& condition, const Real& a, const Real& b) { return {make_select(condition, a.e, b.e)}; }
Real call(Intrinsic intrinsic, const Real& a) { return {make_intrinsic(intrinsic, a.e->dtype, {a.e})}; }
// Clamps a number; NaN stays.
Real clamp(const Real& a, double low, double high) {
  return {make_binary(BinaryOp::min, make_binary(BinaryOp::max, a.e, a.number(low)), a.number(high))};
}

// Coefficients of the highest power first.
Real polynomial(const Real& x, std::initializer_list<double> coefficients) {
  Real sum = x.like(*coefficients.begin());
  for (const double* c = coefficients.begin() + 1; c != coefficients.end(); ++c) sum = sum * x + *c;
  return sum;
}

PrimExpr int_like(int64_t value, const PrimExpr& like) {
  return make_broadcast(make_int(value, DataType::int_(32)), like->dtype.lanes());
}
PrimExpr shift(Intrinsic direction, const PrimExpr& bits, int64_t by) {
  return make_intrinsic(direction, bits->dtype, {bits, int_like(by, bits)});
}
Real from_bits(const PrimExpr& bits) {
  return {make_intrinsic(Intrinsic::reinterpret, DataType::float_(32, bits->dtype.lanes()), {bits})};
}
// 2^n for an integer n in [-126, 127].
Real power_of_two(const PrimExpr& n) { return from_bits(shift(Intrinsic::shift_left, n + int_like(127, n), 23)); }

// ln 2 in two parts; the first has so few bits that its products with n are exact.
constexpr double kLn2High = 0.693359375, kLn2Low = -2.12194440e-4;

Real exp(const Real& argument) {
  // Beyond these, exp is 0 or infinite.
  const Real x = clamp(argument, -104.0, 89.0);
  // Added to 1.5 * 2^23 a number is rounded to an integer, which the last bits of the sum hold.
  constexpr double kToInteger = 0x1.8p23;
  const Real shifted = x * 1.44269504088896341 + kToInteger, n = shifted - kToInteger;
  const Real r = (x - n * kLn2High) - n * kLn2Low;
  const Real p = polynomial(
      r, {1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1});
  const Real mantissa = p * (r * r) + r + 1.0;
  // In two steps, since 2^n itself may be past the range.
  const PrimExpr whole = shifted.bits() - int_like(0x4b400000, x.e), half = shift(Intrinsic::shift_right, whole, 1);
  return mantissa * power_of_two(half) * power_of_two(whole - half);
}

Real log(const Real& argument) {
  constexpr double kLeastNormal = 0x1p-126, kInfinity = std::numeric_limits<double>::infinity();
  const PrimExpr is_small = argument < kLeastNormal;
  const Real x = choose(is_small, argument * 0x1p24, argument);
  const PrimExpr bits = x.bits();
  const PrimExpr mask = int_like(0x7fffff, bits), half = int_like(0x3f000000, bits);
  const PrimExpr mantissa = make_intrinsic(Intrinsic::bitwise_and, bits->dtype, {bits, mask});
  // x is m * 2^e with m in [0.5, 1), then in [sqrt(0.5), sqrt(2)).
  const Real m = from_bits(make_intrinsic(Intrinsic::bitwise_or, bits->dtype, {mantissa, half}));
  const PrimExpr is_low = m < 0.707106781186547524;
  const Real exponent{make_cast(x.e->dtype, shift(Intrinsic::shift_right, bits, 23) - int_like(126, bits))};
  const Real e = exponent - choose(is_small, x.like(24), x.like(0)) - choose(is_low, x.like(1), x.like(0));
  const Real r = choose(is_low, m + m, m) - 1.0, z = r * r;
  const Real p = polynomial(r, {7.0376836292e-2, -1.1514610310e-1, 1.1676998740e-1, -1.2420140846e-1, 1.4249322787e-1,
                                -1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1});
  const Real result = (r + (p * r * z + e * kLn2Low - z * 0.5)) + e * kLn2High;
  // Infinity and NaN stay; 0 gives minus infinity, and negative numbers give NaN.
  const PrimExpr is_finite = argument < kInfinity;
  const Real special = choose(make_binary(BinaryOp::eq, argument.e, argument.number(0)), x.like(-kInfinity),
                              x.like(std::numeric_limits<double>::quiet_NaN()));
  const PrimExpr is_positive = make_binary(BinaryOp::gt, argument.e, argument.number(0));
  return choose(is_positive, choose(is_finite, result, argument),
                choose(make_intrinsic(Intrinsic::isnan, is_finite->dtype, {argument.e}), argument, special));
}

Real tanh(const Real& x) {
  const Real magnitude = call(Intrinsic::abs, x), z = x * x;
  const Real small =
      polynomial(z, {-5.70498872745e-3, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1}) *
          (z * x) +
      x;
  const Real large = x.like(1) - x.like(2) / (exp(magnitude + magnitude) + 1.0);
  return choose(magnitude < 0.625, small, choose(x < 0, x.like(-0.0) - large, large));
}

Real erf(const Real& x) {
  const Real magnitude = clamp(call(Intrinsic::abs, x), 0, 9), z = x * x;
  const Real small =
      x * polynomial(z, {7.853861353153693e-5, -8.010193625184903e-4, 5.188327685732524e-3, -2.685381193529856e-2,
                         1.128358514861418e-1, -3.761262582423300e-1, 1.128379165726710});
  // Computes 1 - erfc: the polynomial's error from 2 on is far below the last place of 1.
  const Real q = x.like(1) / choose(magnitude < 1, x.like(1), magnitude);
  const Real p = polynomial(q * q, {2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1,
                                    -5.824733027278666e-1, 6.210004621745983e-1, -4.944515323274145e-1,
                                    3.404879937665872e-1, -2.741127028184656e-1, 5.638259427386472e-1});
  const Real large = x.like(1) - exp(x.like(0) - magnitude * magnitude) * q * p;
  return choose(magnitude < 1, small, choose(x < 0, x.like(-0.0) - large, large));
}

PrimExpr lower(const PrimExpr& e) {
  const auto* node = e.as<IntrinsicCallNode>();
  if (node == nullptr || e->dtype.element() != DataType::float_(32)) return e;
  const auto argument = [&] { return Real{node->args[0]}; };
  switch (node->intrinsic) {
    case Intrinsic::exp:
      return exp(argument()).e;
    case Intrinsic::log:
      return log(argument()).e;
    case Intrinsic::tanh:
      return tanh(argument()).e;
    case Intrinsic::erf:
      return erf(argument()).e;
    default:
      return e;
  }
}

}  // namespace

tir::PrimFunc lower_math(const tir::PrimFunc& function) {
  const tir::Stmt body = tir::rewrite(function->body, lower);
  if (body == function->body) return function;
  return copy_with(*function, [&](tir::PrimFuncNode& copy) { copy.body = body; });
}

}  // namespace headrace::tir_passes
