#include "passes/simplify/joined_constants.h"

#include <cmath>

namespace headrace::passes::simplify {

namespace {

// Below it numbers have fewer digits.
double smallest_normal(DataType dtype) {
  if (dtype == DataType::float_(16)) return 0x1p-14;
  return dtype == DataType::float_(64) ? 0x1p-1022 : 0x1p-126;
}

// Of the elements that are not 0; infinite when there are none.
double smallest_magnitude(const NDArray& data) {
  double smallest = INFINITY;
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    const double value = std::abs(element_as_double(data.tensor(), i));
    if (value != 0) smallest = std::min(smallest, value);
  }
  return smallest;
}

bool has_zero(const NDArray& data) {
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_double(data.tensor(), i) == 0) return true;
  }
  return false;
}

}  // namespace

bool is_good_sum(const NDArray& result) {
  const double smallest = smallest_normal(result.dtype());
  for (int64_t i = 0; result.dtype().is_float() && i < result.num_elements(); ++i) {
    const double value = element_as_double(result.tensor(), i);
    if (!std::isfinite(value) || (value != 0 && std::abs(value) < smallest)) return false;
  }
  return true;
}

bool is_good_weight(const NDArray& a, const NDArray& b, const NDArray& result) {
  if (!result.dtype().is_float()) return true;
  double largest = 0;
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    const double value = std::abs(element_as_double(result.tensor(), i));
    if (!std::isfinite(value)) return false;
    largest = std::max(largest, value);
  }
  return largest >= smallest_normal(result.dtype()) * 0x1p48 || is_good_product(a, b, result);
}

bool is_good_product(const NDArray& a, const NDArray& b, const NDArray& result) {
  if (!result.dtype().is_float()) return true;
  if (!is_good_sum(result)) return false;
  return !has_zero(result) || smallest_magnitude(a) * smallest_magnitude(b) >= smallest_normal(result.dtype());
}

}  // namespace headrace::passes::simplify
