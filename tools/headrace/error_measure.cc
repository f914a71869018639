#include "tools/headrace/error_measure.h"

#include <algorithm>
#include <cmath>

namespace headrace::tools {

namespace {

// Two integers that differ may be the same number as double.
double integer_difference(const NDArray& want, const NDArray& got, int64_t i) {
  if (element_as_int(want.tensor(), i) == element_as_int(got.tensor(), i)) return 0;
  return std::max(1.0, std::abs(element_as_double(want.tensor(), i) - element_as_double(got.tensor(), i)));
}

// `scale_of` returns what a difference is relative to, by the element of `want`.
template <typename ScaleOf>
ErrorMeasure measure_error(const NDArray& want, const NDArray& got, ScaleOf scale_of) {
  if (want.shape() != got.shape()) return {.error = INFINITY};
  const NDArray a = want.to_dense(), b = got.to_dense();
  const bool is_exact = !a.dtype().is_float() && !a.dtype().is_bfloat16() && a.dtype() == b.dtype();
  ErrorMeasure measure;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = element_as_double(a.tensor(), i), y = element_as_double(b.tensor(), i);
    const bool are_finite = std::isfinite(x) && std::isfinite(y);
    measure.compared += are_finite ? 1 : 0;
    double difference = 0;
    if (is_exact) {
      difference = integer_difference(a, b, i);
    } else if (are_finite) {
      difference = std::abs(x - y);
    } else if (x != y && !(std::isnan(x) && std::isnan(y))) {
      difference = INFINITY;
    }
    if (difference > 0) measure.error = std::max(measure.error, are_finite ? difference / scale_of(x) : INFINITY);
  }
  return measure;
}

}  // namespace

double magnitude_of(const NDArray& tensor) {
  const NDArray dense = tensor.to_dense();
  double largest = 0;
  for (int64_t i = 0; i < dense.num_elements(); ++i) {
    const double element = std::abs(element_as_double(dense.tensor(), i));
    if (std::isfinite(element)) largest = std::max(largest, element);
  }
  return largest == 0 ? 1 : largest;
}

ErrorMeasure relative_error(const NDArray& want, const NDArray& got, double magnitude) {
  return measure_error(want, got, [magnitude](double) { return magnitude; });
}

ErrorMeasure error_in_tolerances(const NDArray& want, const NDArray& got, ElementTolerance tolerance) {
  return measure_error(want, got,
                       [tolerance](double x) { return tolerance.absolute + tolerance.relative * std::abs(x); });
}

}  // namespace headrace::tools
