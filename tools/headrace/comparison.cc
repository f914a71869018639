#include "tools/headrace/comparison.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace headrace::tools {

namespace {

// A peer's error grants no more than this many times itself.
constexpr double kTimesPeer = 2;
// A correct peer may be this much less accurate than we are: other kernels, other orders of sums.
constexpr double kTimesOurs = 4;

// Its functions with results from 0 to 1 may be so many units in the last place of 1 off. The sigmoid of
// onnxruntime 1.31.1 is up to 7.7e-8 off between -9 and -7, where it is 9e-4 at most; a text detector whose page is
// empty ends in such values.
constexpr double kUnitsOfOne = 4;
// That allowance is at most this many times the range's least: 1e-4 for float32, which leaves room for the sigmoid
// above (8.6e-5 of 9e-4). Without a bound, outputs of small elements would hide a wrong import: an epsilon of 1e-3 in
// place of 1e-5 changes a batch norm by 5e-4 of its output.
constexpr double kMostOfAbsolute = 10;

// The distance from 1 to the next number.
double epsilon_of(DataType dtype) {
  if (dtype.is_bfloat16()) return 0x1p-7;
  return dtype.bits() == 16 ? 0x1p-10 : dtype.bits() == 64 ? 0x1p-52 : 0x1p-23;
}

// Integers and bools must be equal whatever limit is given.
bool is_exact(DataType dtype) { return limit_range(dtype).most == 0; }

double share(double error, double limit) {
  if (limit > 0) return error / limit;
  return error > 0 ? INFINITY : 0;
}

// Measures errors of one output, whose reference this is.
class Measure {
 public:
  Measure(const NDArray& reference, const Tolerance& tolerance)
      : magnitude_(magnitude_of(reference)), elementwise_(tolerance.elementwise) {
    if (is_exact(reference.dtype())) elementwise_.reset();
  }

  ErrorMeasure measure(const NDArray& want, const NDArray& got) const {
    return elementwise_ ? error_in_tolerances(want, got, *elementwise_) : relative_error(want, got, magnitude_);
  }
  double magnitude() const { return magnitude_; }

 private:
  double magnitude_;
  std::optional<ElementTolerance> elementwise_;
};

OutputComparison compare_one(const OutputSets& sets, size_t i, const Tolerance& tolerance, int64_t& compared) {
  const NDArray &ours = sets.ours[i], &reference = sets.reference[i];
  const Measure measure(reference, tolerance);
  OutputComparison output;
  output.name = sets.names[i];
  output.dtype = ours.dtype();
  const std::optional<double> given = tolerance.elementwise ? 1 : tolerance.limit;
  const auto limit_or = [&](double own) { return given && !is_exact(output.dtype) ? *given : own; };
  const ErrorMeasure error = measure.measure(reference, ours);
  compared += error.compared;
  output.error = error.error;
  if (sets.peer) {
    const NDArray& peer = (*sets.peer)[i];
    output.peer_error = measure.measure(reference, peer).error;
    output.difference = peer.dtype() == ours.dtype() ? measure.measure(peer, ours).error : INFINITY;
    output.difference_limit = limit_or(difference_limit(output.dtype, output.error, measure.magnitude()));
  }
  output.limit = limit_or(error_limit(output.dtype, output.peer_error));
  return output;
}

}  // namespace

LimitRange limit_range(DataType dtype) {
  // Four units in the last place of the largest element, and ten times that where a peer is no better.
  if (dtype.is_bfloat16()) return {4 * 0x1p-8, 0.1};
  if (!dtype.is_float()) return {0, 0};
  if (dtype.bits() == 16) return {4 * 0x1p-11, 0.02};
  // Rounding adds up over a network's sums: some hundred units in the last place of float32, thousands of float64.
  return {dtype.bits() == 64 ? 1e-12 : 1e-5, 1e-3};
}

double error_limit(DataType dtype, std::optional<double> peer_error) {
  const LimitRange range = limit_range(dtype);
  // A peer that is wrong altogether gives no leave to be.
  if (!peer_error || !std::isfinite(*peer_error)) return range.least;
  return std::clamp(kTimesPeer * *peer_error, range.least, range.most);
}

double difference_limit(DataType dtype, double error, double magnitude) {
  const LimitRange range = limit_range(dtype);
  if (!std::isfinite(error)) return range.least;
  const double absolute = std::min(kUnitsOfOne * epsilon_of(dtype) / magnitude, kMostOfAbsolute * range.least);
  return std::min(range.most, error + std::max({range.least, kTimesOurs * error, absolute}));
}

double OutputComparison::share_of_limit() const {
  return std::max(share(error, limit), peer_error ? share(difference, difference_limit) : 0);
}

std::vector<OutputComparison> compare_outputs(const OutputSets& sets, const Tolerance& tolerance) {
  const size_t count = sets.reference.size();
  if (sets.ours.size() != count || sets.names.size() != count)
    throw_user_error("{} outputs are compared with {}", sets.ours.size(), count);
  if (sets.peer && sets.peer->size() != count)
    throw_user_error("the peer's model has {} outputs, ours {}: it is another network", sets.peer->size(), count);
  std::vector<OutputComparison> outputs;
  int64_t compared = 0;
  for (size_t i = 0; i < count; ++i) outputs.push_back(compare_one(sets, i, tolerance, compared));
  const bool ok = std::all_of(outputs.begin(), outputs.end(), [](const OutputComparison& one) { return one.ok(); });
  if (ok && compared == 0) throw_user_error("no output has a finite element, so nothing is compared");
  return outputs;
}

double largest_difference(const std::vector<NDArray>& ours, const std::vector<NDArray>& peer) {
  if (ours.size() != peer.size()) return INFINITY;
  double largest = 0;
  int64_t compared = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    if (ours[i].dtype() != peer[i].dtype()) return INFINITY;
    const ErrorMeasure measure = relative_error(peer[i], ours[i], magnitude_of(peer[i]));
    largest = std::max(largest, measure.error);
    compared += measure.compared;
  }
  return compared == 0 && largest == 0 ? NAN : largest;
}

const OutputComparison& worst_of(const std::vector<OutputComparison>& outputs) {
  return *std::max_element(outputs.begin(), outputs.end(), [](const auto& a, const auto& b) {
    return std::pair(a.share_of_limit(), a.error) < std::pair(b.share_of_limit(), b.error);
  });
}

std::string explain_mismatch(const OutputComparison& output, const std::string& peer) {
  if (output.is_near_float64()) {
    return fmt::format(
        "The import is suspect: our code agrees with the float64 interpreter on the imported program, but not with {}, "
        "which reads the model itself.",
        peer);
  }
  if (!output.peer_error) return "The compiled code is suspect: the float64 interpreter runs the same program.";
  if (*output.peer_error <= output.limit)
    return fmt::format("The compiled code is suspect: the float64 interpreter and {} agree.", peer);
  if (output.is_near_peer()) {
    return fmt::format(
        "{} is as far from float64 as our code: the network amplifies rounding, or the interpreter is wrong.", peer);
  }
  return fmt::format(
      "All three differ: the interpreter, {} and our code each give another result, so none can be taken as right.",
      peer);
}

}  // namespace headrace::tools
