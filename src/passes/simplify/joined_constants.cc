#include "passes/simplify/joined_constants.h"

#include <bit>
#include <cmath>

#include "ops/loops/element.h"

namespace headrace::passes::simplify {

namespace {

// Below it numbers have fewer digits.
double smallest_normal(DataType dtype) {
  if (dtype == DataType::float_(16)) return 0x1p-14;
  return dtype == DataType::float_(64) ? 0x1p-1022 : 0x1p-126;
}

// The magnitudes of a tensor of floats.
struct Magnitudes {
  double largest = 0, smallest = INFINITY;  // the smallest of those that are not 0
  bool has_zero = false, all_finite = true;
};

// Without their signs, floating-point numbers stand in the order of their bits, zero first, infinity and NaN last.
template <typename T>
Magnitudes magnitudes_in(const NDArray& dense) {
  using Bits = std::conditional_t<sizeof(T) == 2, int16_t, std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  constexpr Bits kMost = std::numeric_limits<Bits>::max();
  constexpr int64_t kBlock = 256;  // a loop of a known length becomes vectors
  Bits largest = 0, least = kMost, smallest = kMost;
  const auto look = [&](const T& element) {
    const auto bits = static_cast<Bits>(std::bit_cast<Bits>(element) & kMost);
    largest = std::max(largest, bits);
    least = std::min(least, bits);
    smallest = std::min(smallest, bits == 0 ? kMost : bits);
  };
  const T* data = dense.data<T>();
  const int64_t n = dense.num_elements();
  int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    for (int64_t k = 0; k < kBlock; ++k) look(data[i + k]);
  }
  for (; i < n; ++i) look(data[i]);
  const auto value = [](Bits bits) {
    return static_cast<double>(static_cast<ops::Compute<T>>(std::bit_cast<T>(bits)));
  };
  return {.largest = value(largest),
          .smallest = smallest == kMost ? INFINITY : value(smallest),
          .has_zero = least == 0,
          .all_finite = std::isfinite(value(largest))};
}

Magnitudes magnitudes_of(const NDArray& data) {
  const NDArray dense = data.to_dense();
  Magnitudes result;
  ops::dispatch_float(dense.dtype(), [&]<typename T>() { result = magnitudes_in<T>(dense); });
  return result;
}

}  // namespace

bool is_good_sum(const NDArray& result) {
  if (!result.dtype().is_float()) return true;
  const Magnitudes m = magnitudes_of(result);
  return m.all_finite && m.smallest >= smallest_normal(result.dtype());
}

bool is_good_weight(const NDArray& a, const NDArray& b, const NDArray& result) {
  if (!result.dtype().is_float()) return true;
  const Magnitudes m = magnitudes_of(result);
  if (!m.all_finite) return false;
  return m.largest >= smallest_normal(result.dtype()) * 0x1p48 || is_good_product(a, b, result);
}

bool is_good_product(const NDArray& a, const NDArray& b, const NDArray& result) {
  if (!result.dtype().is_float()) return true;
  const double smallest = smallest_normal(result.dtype());
  const Magnitudes m = magnitudes_of(result);
  if (!m.all_finite || m.smallest < smallest) return false;
  return !m.has_zero || magnitudes_of(a).smallest * magnitudes_of(b).smallest >= smallest;
}

}  // namespace headrace::passes::simplify
