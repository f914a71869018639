// Numbers as other C++ types, as `cast` defines it for tensors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/data_type.h"

namespace headrace {

// A number as a C++ type: to an integer it truncates toward zero and saturates, NaN becomes 0.
template <typename To, typename From>
To convert_number(From value) {
  if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
    if (value != value) return 0;
    // The limits as floats may round up, hence >=.
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

// An integer as a double on its way to 16 bits: what of 64 bits a double does not hold becomes one bit that it does
// hold, so that rounding it further gives what rounding the integer once gives.
template <typename From>
double widen_to_odd(From value) {
  if constexpr (std::is_integral_v<From> && sizeof(From) == 8) {
    constexpr From kExact = From{1} << 53, kBelow = 0xfff;
    const bool is_exact = value <= kExact && (std::is_unsigned_v<From> || value >= static_cast<From>(0 - kExact));
    if (!is_exact) value = static_cast<From>((value & ~kBelow) | ((value & kBelow) != 0 ? 0x800 : 0));
  }
  return static_cast<double>(value);
}

// A double as a float on its way to 16 bits: rounded to odd, so that rounding it once more gives what rounding the
// double gives (Boldo and Melquiond 2008).
inline float narrow_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (std::isnan(value) || back == value) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(back) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// The number of a floating point dtype that is nearest to `value`, as a double; rounded once.
double round_number(double value, DataType dtype);

}  // namespace headrace
