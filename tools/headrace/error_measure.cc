#include "tools/headrace/error_measure.h"

#include <cmath>

namespace headrace::tools {

namespace {

double relative_error(const NDArray& reference, const NDArray& actual, int64_t& compared) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < reference.num_elements(); ++i) {
    const double want = element_as_double(reference.tensor(), i), got = element_as_double(actual.tensor(), i);
    if (std::isfinite(want)) largest = std::max(largest, std::abs(want));
    compared += std::isfinite(want) && std::isfinite(got) ? 1 : 0;
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    if (!std::isfinite(want) || !std::isfinite(got)) return INFINITY;
    difference = std::max(difference, std::abs(want - got));
  }
  // An output that should be all zeros has no scale of its own.
  return largest == 0 ? difference : difference / largest;
}

}  // namespace

double relative_error(const std::vector<NDArray>& reference, const std::vector<NDArray>& actual) {
  if (reference.size() != actual.size())
    throw_user_error("{} outputs are compared with {}", actual.size(), reference.size());
  double worst = 0;
  int64_t compared = 0;
  for (size_t k = 0; k < reference.size(); ++k) {
    const NDArray want = reference[k].to_dense(), got = actual[k].to_dense();
    if (want.shape() != got.shape()) throw_user_error("output {} has another shape than the reference's", k);
    worst = std::max(worst, relative_error(want, got, compared));
  }
  if (worst == 0 && compared == 0) throw_user_error("no output has a finite element, so nothing is compared");
  return worst;
}

}  // namespace headrace::tools
