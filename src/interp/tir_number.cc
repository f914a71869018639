#include "interp/tir_number.h"

#include <bit>
#include <cmath>
#include <limits>

#include "ir/compare.h"
#include "ir/intrinsics.h"
#include "tensor/convert_number.h"
#include "tensor/narrow_float.h"

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

constexpr DataType kFloat = DataType::float_(32);

// Returns a number as the float from which it is rounded to 16 bits or fewer.
float odd_float(Cell value, DataType from) {
  if (from.is_float()) return is_wide(from) ? narrow_to_odd(f64(value)) : f32(value);
  return narrow_to_odd(from.is_int() ? widen_to_odd(static_cast<int64_t>(value)) : widen_to_odd(value));
}

}  // namespace

void fail_to_compute(DataType dtype) {
  throw_user_error("the interpreter does not compute with {}; cast to a number of whole bytes first", dtype.element());
}

void check_cell_dtype(DataType dtype) {
  const bool is_whole = (dtype.is_int() || dtype.is_uint()) && dtype.bits() % 8 == 0 &&
                        std::has_single_bit(static_cast<unsigned>(dtype.bits()));
  const bool is_real = dtype.is_float() && (dtype.bits() == 16 || dtype.bits() == 32 || dtype.bits() == 64);
  if (!is_whole && !is_real && !dtype.is_bool() && !dtype.is_narrow()) fail_to_compute(dtype);
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

Cell cell_of_int(int64_t value, DataType dtype) {
  const auto cell = static_cast<uint64_t>(value);
  return dtype.is_narrow_float() ? cast(cell, kIndexType, dtype) : wrap(cell, dtype);
}

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
  if (from.is_narrow_float()) return cast(of(narrow_to_float(static_cast<uint8_t>(value), from), kFloat), kFloat, to);
  if (to.is_narrow_float()) return float_to_narrow(odd_float(value, from), to);
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
  if (to.bits() == 16 && from.bits() > 16) return of(odd_float(value, from), to);
  if (is_wide(to)) return of(from.is_int() ? static_cast<double>(number) : static_cast<double>(value), to);
  return of(from.is_int() ? static_cast<float>(number) : static_cast<float>(value), to);
}

Cell reinterpret(Cell value, DataType from, DataType to) {
  std::byte memory[8] = {};
  write_element(memory, value, from.element());
  return read_element(memory, to.element());
}

Cell intrinsic(Intrinsic which, const Cell* args, DataType dtype) {
  const IntrinsicRow& row = row_of(which);
  const IntrinsicEvaluation& run = row.evaluation;
  if (!dtype.is_float()) {
    HEADRACE_CHECK(run.integers != nullptr, "{} of {}", row.name, dtype);
    return wrap(run.integers(args, dtype), dtype);
  }
  constexpr size_t kMostArgs = 3;
  HEADRACE_CHECK(row.arity <= kMostArgs, "{} takes {} numbers", row.name, row.arity);
  if (run.tests != nullptr) return run.tests(is_wide(dtype) ? f64(args[0]) : static_cast<double>(f32(args[0])));
  HEADRACE_CHECK(run.floats != nullptr, "{} of {}", row.name, dtype);
  if (is_wide(dtype)) {
    double wide[kMostArgs];
    for (size_t i = 0; i < row.arity; ++i) wide[i] = f64(args[i]);
    return of(run.doubles(wide), dtype);
  }
  float numbers[kMostArgs];
  for (size_t i = 0; i < row.arity; ++i) numbers[i] = f32(args[i]);
  return of(run.floats(numbers), dtype);
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
