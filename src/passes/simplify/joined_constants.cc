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

Signs signs_of(const NDArray& data) {
  const NDArray dense = data.to_dense();
  Signs signs;
  for (int64_t i = 0; i < dense.num_elements(); ++i) {
    const double value = element_as_double(dense.tensor(), i);
    signs.positive |= value > 0;
    signs.negative |= value < 0;
  }
  return signs;
}

bool keeps_range(const NDArray& a, const NDArray& b) {
  if (!a.dtype().is_float()) return true;
  const Magnitudes x = magnitudes_of(a), y = magnitudes_of(b);
  const auto shrinks_nothing = [](const Magnitudes& m) { return m.smallest >= 1 && !m.has_zero; };
  if (x.largest <= 1 && y.largest <= 1) return true;
  if (shrinks_nothing(x) && shrinks_nothing(y)) return true;
  const auto is_moderate = [](const Magnitudes& m) { return m.smallest >= 0x1p-32 && m.largest <= 0x1p32; };
  return a.dtype() != DataType::float_(16) && is_moderate(x) && is_moderate(y);
}

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
