#include "ir/intrinsics.h"

#include <algorithm>
#include <cmath>

namespace headrace {

namespace {

// Make the evaluation of a function of floats from a lambda that takes float and double alike.
template <auto F>
constexpr IntrinsicEvaluation of_one() {
  return {.floats = [](const float* a) -> float { return F(a[0]); },
          .doubles = [](const double* a) -> double { return F(a[0]); }};
}
template <auto F>
constexpr IntrinsicEvaluation of_two() {
  return {.floats = [](const float* a) -> float { return F(a[0], a[1]); },
          .doubles = [](const double* a) -> double { return F(a[0], a[1]); }};
}
template <auto F>
constexpr IntrinsicEvaluation of_three() {
  return {.floats = [](const float* a) -> float { return F(a[0], a[1], a[2]); },
          .doubles = [](const double* a) -> double { return F(a[0], a[1], a[2]); }};
}

int64_t signed_of(uint64_t value) { return static_cast<int64_t>(value); }

uint64_t low_bits(uint64_t value, int bits) { return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1); }

uint64_t whole_abs(const uint64_t* a, DataType dtype) {
  return dtype.is_int() && signed_of(a[0]) < 0 ? 0 - a[0] : a[0];
}

// By squaring; below 0 the truncated quotient 1 / base^-exponent.
uint64_t whole_power(const uint64_t* a, DataType dtype) {
  uint64_t base = a[0], exponent = a[1], result = 1;
  if (dtype.is_int() && signed_of(exponent) < 0) {
    if (base == 1) return 1;
    return base == ~uint64_t{0} ? ((exponent & 1) != 0 ? base : 1) : 0;
  }
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return result;
}

// A shift by the width or more gives what shifting step by step would.
uint64_t whole_shift_left(const uint64_t* a, DataType dtype) {
  const uint64_t by = low_bits(a[1], dtype.bits());
  return by >= static_cast<uint64_t>(dtype.bits()) ? 0 : a[0] << by;
}
uint64_t whole_shift_right(const uint64_t* a, DataType dtype) {
  const uint64_t by = low_bits(a[1], dtype.bits()), last = static_cast<uint64_t>(dtype.bits() - 1);
  if (dtype.is_int()) return static_cast<uint64_t>(signed_of(a[0]) >> std::min(by, last));
  return by > last ? 0 : a[0] >> by;
}

constexpr IntrinsicEvaluation kAbs{.floats = [](const float* a) -> float { return std::abs(a[0]); },
                                   .doubles = [](const double* a) -> double { return std::abs(a[0]); },
                                   .integers = whole_abs};
constexpr IntrinsicEvaluation kPower{.floats = [](const float* a) -> float { return std::pow(a[0], a[1]); },
                                     .doubles = [](const double* a) -> double { return std::pow(a[0], a[1]); },
                                     .integers = whole_power};

template <auto F>
constexpr IntrinsicRow real_function(Intrinsic intrinsic, std::string_view name) {
  return {intrinsic, name, 1, OperandRule::real, ResultRule::operand, IntrinsicEffect::none, true, of_one<F>()};
}
constexpr IntrinsicRow test(Intrinsic intrinsic, std::string_view name, bool (*run)(double)) {
  return {intrinsic, name, 1, OperandRule::real, ResultRule::truth, IntrinsicEffect::none, true, {.tests = run}};
}
constexpr IntrinsicRow of_integers(Intrinsic intrinsic, std::string_view name, size_t arity,
                                   uint64_t (*run)(const uint64_t*, DataType)) {
  return {intrinsic,        name, arity, OperandRule::integer, ResultRule::operand, IntrinsicEffect::none, true,
          {.integers = run}};
}

using enum Intrinsic;

constexpr IntrinsicRow kRows[] = {
    real_function<[](auto x) { return std::exp(x); }>(exp, "exp"),
    real_function<[](auto x) { return std::log(x); }>(log, "log"),
    real_function<[](auto x) { return std::log2(x); }>(log2, "log2"),
    real_function<[](auto x) { return std::log10(x); }>(log10, "log10"),
    real_function<[](auto x) { return std::log1p(x); }>(log1p, "log1p"),
    real_function<[](auto x) { return std::sqrt(x); }>(sqrt, "sqrt"),
    real_function<[](auto x) { return decltype(x){1} / std::sqrt(x); }>(rsqrt, "rsqrt"),
    real_function<[](auto x) { return std::sin(x); }>(sin, "sin"),
    real_function<[](auto x) { return std::cos(x); }>(cos, "cos"),
    real_function<[](auto x) { return std::tan(x); }>(tan, "tan"),
    real_function<[](auto x) { return std::asin(x); }>(asin, "asin"),
    real_function<[](auto x) { return std::acos(x); }>(acos, "acos"),
    real_function<[](auto x) { return std::atan(x); }>(atan, "atan"),
    real_function<[](auto x) { return std::sinh(x); }>(sinh, "sinh"),
    real_function<[](auto x) { return std::cosh(x); }>(cosh, "cosh"),
    real_function<[](auto x) { return std::tanh(x); }>(tanh, "tanh"),
    real_function<[](auto x) { return std::asinh(x); }>(asinh, "asinh"),
    real_function<[](auto x) { return std::acosh(x); }>(acosh, "acosh"),
    real_function<[](auto x) { return std::atanh(x); }>(atanh, "atanh"),
    real_function<[](auto x) { return std::erf(x); }>(erf, "erf"),
    real_function<[](auto x) { return std::floor(x); }>(floor, "floor"),
    real_function<[](auto x) { return std::ceil(x); }>(ceil, "ceil"),
    real_function<[](auto x) { return std::round(x); }>(round, "round"),
    real_function<[](auto x) { return std::trunc(x); }>(trunc, "trunc"),
    {abs, "abs", 1, OperandRule::number, ResultRule::operand, IntrinsicEffect::none, true, kAbs},
    {pow, "pow", 2, OperandRule::number, ResultRule::operand, IntrinsicEffect::none, true, kPower},
    {fma, "fma", 3, OperandRule::real, ResultRule::operand, IntrinsicEffect::none, true,
     of_three<[](auto x, auto y, auto z) { return std::fma(x, y, z); }>()},
    test(isnan, "isnan", [](double x) { return std::isnan(x); }),
    test(isinf, "isinf", [](double x) { return std::isinf(x); }),
    {if_then_else, "if_then_else", 3, OperandRule::choice, ResultRule::choice},
    of_integers(bitwise_and, "bitwise_and", 2, [](const uint64_t* a, DataType) { return a[0] & a[1]; }),
    of_integers(bitwise_or, "bitwise_or", 2, [](const uint64_t* a, DataType) { return a[0] | a[1]; }),
    of_integers(bitwise_xor, "bitwise_xor", 2, [](const uint64_t* a, DataType) { return a[0] ^ a[1]; }),
    of_integers(bitwise_not, "bitwise_not", 1, [](const uint64_t* a, DataType) { return ~a[0]; }),
    of_integers(shift_left, "shift_left", 2, whole_shift_left),
    of_integers(shift_right, "shift_right", 2, whole_shift_right),
    {reinterpret, "reinterpret", 1, OperandRule::bits, ResultRule::given},
    {vector_load, "vector_load", 2, OperandRule::place, ResultRule::given, IntrinsicEffect::reads_memory, false},
    {reduce_add, "reduce_add", 1, OperandRule::number, ResultRule::element, IntrinsicEffect::none, false},
    {prefetch, "prefetch", 2, OperandRule::place, ResultRule::none, IntrinsicEffect::hint, false},
    {hypot, "hypot", 2, OperandRule::real, ResultRule::operand, IntrinsicEffect::none, true,
     of_two<[](auto x, auto y) { return std::hypot(x, y); }>()},
    // The default rounding mode is to nearest, halves to even.
    real_function<[](auto x) { return std::nearbyint(x); }>(nearbyint, "nearbyint"),
};
static_assert(lists_every_intrinsic(kRows));

}  // namespace

const IntrinsicRow& row_of(Intrinsic intrinsic) { return kRows[static_cast<size_t>(intrinsic)]; }

std::string_view name_of(Intrinsic intrinsic) { return row_of(intrinsic).name; }

std::optional<Intrinsic> find_intrinsic(std::string_view name) {
  for (const IntrinsicRow& row : kRows) {
    if (row.name == name) return row.intrinsic;
  }
  return std::nullopt;
}

std::optional<DataType> computed_narrow_dtype(const PrimExpr& e) {
  const auto if_narrow = [](const PrimExpr& operand) {
    return operand->dtype.is_narrow() ? std::optional(operand->dtype.element()) : std::nullopt;
  };
  if (const auto* binary = e.as<BinaryNode>()) return if_narrow(binary->a);
  if (const auto* ramp = e.as<RampNode>()) return if_narrow(ramp->base);
  const auto* call = e.as<IntrinsicCallNode>();
  if (call == nullptr || call->args.empty()) return std::nullopt;
  const OperandRule rule = row_of(call->intrinsic).operands;
  const bool computes = rule == OperandRule::real || rule == OperandRule::number || rule == OperandRule::integer;
  return computes ? if_narrow(call->args[0]) : std::nullopt;
}

}  // namespace headrace
