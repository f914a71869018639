// Numbers as other C++ types, as `cast` defines it for tensors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "tensor/data_type.h"

namespace headrace {

// Converts a number to a C++ type. To an integer it truncates toward zero and saturates, and NaN becomes 0.
template <typename To, typename From>
To convert_number(From value) {
  if constexpr (std::is_floating_point_v<From> && !std::is_floating_point_v<To>) {
    if (value != value) return 0;
    // Compares with >=, because the limits as floats may round up.
    if (value >= static_cast<From>(std::numeric_limits<To>::max())) return std::numeric_limits<To>::max();
    if (value <= static_cast<From>(std::numeric_limits<To>::min())) return std::numeric_limits<To>::min();
  }
  return static_cast<To>(value);
}

// Converts an integer to the double from which it is rounded to 16 bits. Bits of a 64-bit integer that a double cannot
// hold are folded into one sticky bit, so that rounding the double gives the same as rounding the integer once.
template <typename From>
double widen_to_odd(From value) {
  if constexpr (std::is_integral_v<From> && sizeof(From) == 8) {
    constexpr From kExact = From{1} << 53, kBelow = 0xfff;
    const bool is_exact = value <= kExact && (std::is_unsigned_v<From> || value >= static_cast<From>(0 - kExact));
    if (!is_exact) value = static_cast<From>((value & ~kBelow) | ((value & kBelow) != 0 ? 0x800 : 0));
  }
  return static_cast<double>(value);
}

// Converts a double to the float from which it is rounded to 16 bits. Rounds to odd, so that rounding the float gives
// the same as rounding the double once (Boldo and Melquiond 2008).
inline float narrow_to_odd(double value) {
  const float nearest = static_cast<float>(value);
  const double back = static_cast<double>(nearest);
  if (std::isnan(value) || back == value) return nearest;
  auto bits = std::bit_cast<uint32_t>(nearest);
  if (std::abs(back) > std::abs(value)) --bits;
  return std::bit_cast<float>(bits | 1);
}

// Returns the number of a floating-point dtype that is nearest to `value`, as a double; rounds once.
double round_number(double value, DataType dtype);

}  // namespace headrace
