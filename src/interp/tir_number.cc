#include "interp/tir_number.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/compare.h"
#include "tensor/convert_number.h"

namespace headrace::interp {

namespace {

bool is_wide(DataType dtype) { return dtype.bits() == 64; }
float f32(Cell cell) { return std::bit_cast<float>(static_cast<uint32_t>(cell)); }
double f64(Cell cell) { return std::bit_cast<double>(cell); }

float rounded(float value, DataType dtype) {
  if (dtype.bits() != 16) return value;
  return dtype.is_bfloat16() ? bfloat16_to_float(float_to_bfloat16(value)) : half_to_float(float_to_half(value));
}
Cell of(float value, DataType dtype) { return std::bit_cast<uint32_t>(rounded(value, dtype)); }
Cell of(double value, DataType) { return std::bit_cast<uint64_t>(value); }

uint64_t low_bits(uint64_t value, int bits) { return bits == 64 ? value : value & ((uint64_t{1} << bits) - 1); }

template <typename T>
Cell real_binary(BinaryOp op, T a, T b, DataType dtype) {
  if (is_comparison(op)) return compare(op, a, b);
  switch (op) {
    case BinaryOp::add:
      return of(a + b, dtype);
    case BinaryOp::sub:
      return of(a - b, dtype);
    case BinaryOp::mul:
      return of(a * b, dtype);
    case BinaryOp::div:
      return of(a / b, dtype);
    case BinaryOp::floor_div:
      return of(std::floor(sizeof(T) == 4 ? static_cast<T>(rounded(static_cast<float>(a / b), dtype)) : a / b), dtype);
    case BinaryOp::mod:
      return of(std::fmod(a, b), dtype);
    case BinaryOp::floor_mod: {
      const T rest = std::fmod(a, b);
      const bool shifts = (rest < 0) != (b < 0) && (rest < 0 || rest > 0);
      return of(shifts ? rest + b : rest, dtype);
    }
    case BinaryOp::min:
      return of(std::isnan(b) || b < a ? b : a, dtype);
    case BinaryOp::max:
      return of(std::isnan(b) || b > a ? b : a, dtype);
    default:
      break;
  }
  throw InternalError("a logical operator of floats");
}

Cell divide(BinaryOp op, Cell a, Cell b, DataType dtype) {
  const bool wants_quotient = op == BinaryOp::div || op == BinaryOp::floor_div;
  if (b == 0) return 0;
  if (!dtype.is_int()) return wants_quotient ? a / b : a % b;
  const auto x = static_cast<int64_t>(a), y = static_cast<int64_t>(b);
  if (y == -1) return wants_quotient ? wrap(0 - a, dtype) : 0;
  const int64_t quotient = x / y, rest = x % y;
  const bool down = (op == BinaryOp::floor_div || op == BinaryOp::floor_mod) && rest != 0 && (rest < 0) != (y < 0);
  return wrap(static_cast<uint64_t>(wants_quotient ? quotient - (down ? 1 : 0) : rest + (down ? y : 0)), dtype);
}

template <typename T>
Cell whole_binary(BinaryOp op, T a, T b, DataType dtype) {
  if (is_comparison(op)) return compare(op, a, b);
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  switch (op) {
    case BinaryOp::add:
      return wrap(x + y, dtype);
    case BinaryOp::sub:
      return wrap(x - y, dtype);
    case BinaryOp::mul:
      return wrap(x * y, dtype);
    case BinaryOp::min:
      return static_cast<uint64_t>(std::min(a, b));
    case BinaryOp::max:
      return static_cast<uint64_t>(std::max(a, b));
    case BinaryOp::logical_and:
      return x & y;
    case BinaryOp::logical_or:
      return x | y;
    default:
      return divide(op, x, y, dtype);
  }
}

Cell real_to_whole(double value, DataType to) {
  if (std::isnan(value)) return 0;
  value = std::trunc(value);
  const double limit = std::ldexp(1.0, to.bits() - (to.is_int() ? 1 : 0));  // one past the largest
  if (to.is_int()) {
    if (value < -limit) return wrap(uint64_t{1} << (to.bits() - 1), to);
    if (value >= limit) return (uint64_t{1} << (to.bits() - 1)) - 1;
    return wrap(static_cast<uint64_t>(static_cast<int64_t>(value)), to);
  }
  if (value <= 0) return 0;
  return value >= limit ? low_bits(~uint64_t{0}, to.bits()) : static_cast<uint64_t>(value);
}

template <typename T>
struct Function {
  Intrinsic which;
  T (*run)(T);
};
template <typename T>
constexpr Function<T> kFunctions[] = {
    {Intrinsic::exp, [](T x) -> T { return std::exp(x); }},
    {Intrinsic::log, [](T x) -> T { return std::log(x); }},
    {Intrinsic::log2, [](T x) -> T { return std::log2(x); }},
    {Intrinsic::log10, [](T x) -> T { return std::log10(x); }},
    {Intrinsic::log1p, [](T x) -> T { return std::log1p(x); }},
    {Intrinsic::sqrt, [](T x) -> T { return std::sqrt(x); }},
    {Intrinsic::sin, [](T x) -> T { return std::sin(x); }},
    {Intrinsic::cos, [](T x) -> T { return std::cos(x); }},
    {Intrinsic::tan, [](T x) -> T { return std::tan(x); }},
    {Intrinsic::asin, [](T x) -> T { return std::asin(x); }},
    {Intrinsic::acos, [](T x) -> T { return std::acos(x); }},
    {Intrinsic::atan, [](T x) -> T { return std::atan(x); }},
    {Intrinsic::sinh, [](T x) -> T { return std::sinh(x); }},
    {Intrinsic::cosh, [](T x) -> T { return std::cosh(x); }},
    {Intrinsic::tanh, [](T x) -> T { return std::tanh(x); }},
    {Intrinsic::asinh, [](T x) -> T { return std::asinh(x); }},
    {Intrinsic::acosh, [](T x) -> T { return std::acosh(x); }},
    {Intrinsic::atanh, [](T x) -> T { return std::atanh(x); }},
    {Intrinsic::erf, [](T x) -> T { return std::erf(x); }},
    {Intrinsic::floor, [](T x) -> T { return std::floor(x); }},
    {Intrinsic::ceil, [](T x) -> T { return std::ceil(x); }},
    {Intrinsic::trunc, [](T x) -> T { return std::trunc(x); }},
    {Intrinsic::rsqrt, [](T x) -> T { return T{1} / std::sqrt(x); }},
    {Intrinsic::round, [](T x) -> T { return std::nearbyint(x); }},
    {Intrinsic::abs, [](T x) -> T { return std::abs(x); }},
};

template <typename T>
T library(Intrinsic which, T x) {
  for (const Function<T>& function : kFunctions<T>) {
    if (function.which == which) return function.run(x);
  }
  throw InternalError(fmt::format("{} is no function of one number", name_of(which)));
}

template <typename T>
Cell real_intrinsic(Intrinsic which, T x, T y, T z, DataType dtype) {
  if (which == Intrinsic::isnan) return std::isnan(x);
  if (which == Intrinsic::isinf) return std::isinf(x);
  if (which == Intrinsic::pow) return of(std::pow(x, y), dtype);
  if (which == Intrinsic::fma) return of(std::fma(x, y, z), dtype);
  return of(library(which, x), dtype);
}

// By squaring; below 0 the truncated quotient 1 / base^-exponent.
Cell power(Cell base, Cell exponent, DataType dtype) {
  if (dtype.is_int() && static_cast<int64_t>(exponent) < 0) {
    if (base == 1) return 1;
    return base == ~uint64_t{0} ? ((exponent & 1) != 0 ? base : 1) : 0;
  }
  uint64_t result = 1;
  for (; exponent != 0; exponent >>= 1, base *= base) {
    if ((exponent & 1) != 0) result *= base;
  }
  return wrap(result, dtype);
}

Cell shift(Intrinsic which, Cell a, Cell amount, DataType dtype) {
  const uint64_t by = low_bits(amount, dtype.bits()), last = static_cast<uint64_t>(dtype.bits() - 1);
  if (which == Intrinsic::shift_right && dtype.is_int())
    return static_cast<uint64_t>(static_cast<int64_t>(a) >> std::min(by, last));
  if (by > last) return 0;
  return which == Intrinsic::shift_left ? wrap(a << by, dtype) : a >> by;
}

Cell whole_intrinsic(Intrinsic which, const Cell* args, DataType dtype) {
  switch (which) {
    case Intrinsic::abs:
      return dtype.is_int() && static_cast<int64_t>(args[0]) < 0 ? wrap(0 - args[0], dtype) : args[0];
    case Intrinsic::pow:
      return power(args[0], args[1], dtype);
    case Intrinsic::bitwise_and:
      return args[0] & args[1];
    case Intrinsic::bitwise_or:
      return args[0] | args[1];
    case Intrinsic::bitwise_xor:
      return args[0] ^ args[1];
    case Intrinsic::bitwise_not:
      return wrap(~args[0], dtype);
    case Intrinsic::shift_left:
    case Intrinsic::shift_right:
      return shift(which, args[0], args[1], dtype);
    default:
      throw InternalError(fmt::format("{} of {}", name_of(which), dtype));
  }
}

}  // namespace

void check_cell_dtype(DataType dtype) {
  const bool is_whole = (dtype.is_int() || dtype.is_uint()) && dtype.bits() % 8 == 0 &&
                        std::has_single_bit(static_cast<unsigned>(dtype.bits()));
  const bool is_real = dtype.is_float() && (dtype.bits() == 16 || dtype.bits() == 32 || dtype.bits() == 64);
  if (!is_whole && !is_real && !dtype.is_bool())
    throw_user_error("the interpreter does not compute with {}; cast to a number of whole bytes first",
                     dtype.element());
}

Cell wrap(uint64_t value, DataType dtype) {
  if (dtype.is_bool()) return value & 1;
  if (dtype.bits() == 64) return value;
  const int unused = 64 - dtype.bits();
  return dtype.is_int() ? static_cast<uint64_t>(static_cast<int64_t>(value << unused) >> unused)
                        : value << unused >> unused;
}

Cell cell_of_float(double value, DataType dtype) {
  return cast(std::bit_cast<uint64_t>(value), DataType::float_(64), dtype.element());
}

Cell cell_of_int(int64_t value, DataType dtype) { return wrap(static_cast<uint64_t>(value), dtype); }

Cell binary(BinaryOp op, Cell a, Cell b, DataType dtype) {
  if (dtype.is_float())
    return is_wide(dtype) ? real_binary(op, f64(a), f64(b), dtype) : real_binary(op, f32(a), f32(b), dtype);
  if (dtype.is_int()) return whole_binary(op, static_cast<int64_t>(a), static_cast<int64_t>(b), dtype);
  return whole_binary(op, a, b, dtype);
}

Cell cast(Cell value, DataType from, DataType to) {
  from = from.element();
  to = to.element();
  if (from == to) return value;
  if (from.is_float()) {
    if (to.is_bool()) return is_wide(from) ? f64(value) != 0 : f32(value) != 0;
    if (!to.is_float()) return real_to_whole(is_wide(from) ? f64(value) : static_cast<double>(f32(value)), to);
    if (is_wide(to)) return of(static_cast<double>(f32(value)), to);
    if (!is_wide(from)) return of(f32(value), to);
    return to.bits() == 16 ? of(narrow_to_odd(f64(value)), to) : of(static_cast<float>(f64(value)), to);
  }
  if (to.is_bool()) return value != 0;
  if (!to.is_float()) return wrap(value, to);
  const auto number = static_cast<int64_t>(value);
  // By way of double, so that numbers of more than 24 bits are rounded once.
  if (to.bits() == 16 && from.bits() > 16)
    return of(narrow_to_odd(from.is_int() ? widen_to_odd(number) : widen_to_odd(value)), to);
  if (is_wide(to)) return of(from.is_int() ? static_cast<double>(number) : static_cast<double>(value), to);
  return of(from.is_int() ? static_cast<float>(number) : static_cast<float>(value), to);
}

Cell reinterpret(Cell value, DataType from, DataType to) {
  std::byte memory[8] = {};
  write_element(memory, value, from.element());
  return read_element(memory, to.element());
}

Cell intrinsic(Intrinsic which, const Cell* args, DataType dtype) {
  if (!dtype.is_float()) return whole_intrinsic(which, args, dtype);
  const bool has_y = which == Intrinsic::pow || which == Intrinsic::fma, has_z = which == Intrinsic::fma;
  if (is_wide(dtype))
    return real_intrinsic(which, f64(args[0]), has_y ? f64(args[1]) : 0, has_z ? f64(args[2]) : 0, dtype);
  return real_intrinsic(which, f32(args[0]), has_y ? f32(args[1]) : 0, has_z ? f32(args[2]) : 0, dtype);
}

Cell read_element(const std::byte* at, DataType dtype) {
  uint64_t bits = 0;
  std::memcpy(&bits, at, dtype.bytes());  // little-endian, as all we run on
  if (dtype.is_bool()) return bits != 0;
  if (!dtype.is_float()) return wrap(bits, dtype);
  if (dtype.bits() != 16) return bits;
  const auto half = static_cast<uint16_t>(bits);
  return std::bit_cast<uint32_t>(dtype.is_bfloat16() ? bfloat16_to_float(half) : half_to_float(half));
}

void write_element(std::byte* at, Cell value, DataType dtype) {
  if (dtype.is_float() && dtype.bits() == 16)
    value = dtype.is_bfloat16() ? float_to_bfloat16(f32(value)) : float_to_half(f32(value));
  std::memcpy(at, &value, dtype.bytes());
}

}  // namespace headrace::interp
