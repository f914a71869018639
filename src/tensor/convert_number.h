// Numbers as other C++ types, as `cast` defines it for tensors.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

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

}  // namespace headrace
