#include "passes/simplify/joined_constants.h"

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

Magnitudes magnitudes_of(const NDArray& data) {
  Magnitudes m;
  const NDArray dense = data.to_dense();
  ops::dispatch_float(dense.dtype(), [&]<typename T>() {
    const ops::Elements<T> elements(dense);
    for (int64_t i = 0, n = dense.num_elements(); i < n; ++i) {
      const auto value = static_cast<double>(std::abs(elements[i]));
      m.all_finite = m.all_finite && std::isfinite(value);
      m.has_zero = m.has_zero || value == 0;
      m.largest = std::max(m.largest, value);
      if (value != 0) m.smallest = std::min(m.smallest, value);
    }
  });
  return m;
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
