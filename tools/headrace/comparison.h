// Compares the outputs of a compiled model with those of the float64 interpreter and of another runtime.
//
// The interpreter runs the imported program, so it reveals a wrong compilation but not a wrong import. The other
// runtime reads the model itself, so it reveals a wrong import, and it rounds as compiled code does. Therefore three
// errors are measured for each output: ours to float64, the peer's to float64, and ours to the peer's. All are relative
// to the largest element of the float64 output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/ndarray.h"
#include "tools/headrace/error_measure.h"

namespace headrace::tools {

// The range of a limit that the user does not give.
struct LimitRange {
  double least, most;
};

// float32 1e-5 to 1e-3, float64 1e-12 to 1e-3, float16 0.002 to 0.02, bfloat16 0.016 to 0.1; integers and bools 0.
LimitRange limit_range(DataType dtype);

// Returns the largest allowed error of our output to float64: twice the peer's error, clamped to the dtype's range. The
// range's least for an infinite peer error, and if there is no peer.
double error_limit(DataType dtype, std::optional<double> peer_error);

// Returns the largest allowed difference between our output and the peer's: our error plus an allowance for the peer's
// error, at most the range's most. The allowance is the largest of: four times our error, the range's least, and four
// units in the last place of 1 but at most ten times the range's least. The last is for functions such as sigmoid,
// which are often computed with an absolute error that matters if all elements of an output are small. All errors are
// relative to `magnitude`, the largest element of the output. The limit does not depend on the peer's measured error,
// because a wrong import makes that error large; a network that amplifies rounding shows in our own error, too.
double difference_limit(DataType dtype, double error, double magnitude);

struct OutputComparison {
  std::string name;
  DataType dtype;
  double error = 0, limit = 0;  // ours to float64
  std::optional<double> peer_error;
  double difference = 0, difference_limit = 0;  // ours to the peer's; 0 without a peer

  bool is_near_float64() const { return error <= limit; }
  bool is_near_peer() const { return difference <= difference_limit; }
  bool ok() const { return is_near_float64() && is_near_peer(); }
  // Returns the larger of error / limit and difference / difference_limit. A value above 1 is a mismatch.
  double share_of_limit() const;
};

// Differences that the user allows in outputs of floats; integers and bools must be equal.
struct Tolerance {
  std::optional<double> limit = {};  // replaces both limits above
  // If given, errors and differences are in tolerances of their elements, and their limits are 1.
  std::optional<ElementTolerance> elementwise = {};
};

struct OutputSets {
  std::vector<std::string> names;
  std::vector<NDArray> ours, reference;
  std::optional<std::vector<NDArray>> peer;
};

// Returns one comparison for each output. Throws UserError if the sets have different numbers of outputs, or if no
// element is finite in both, because nothing would be compared. The error is infinite if the shapes differ, or if the
// peer's dtype differs.
std::vector<OutputComparison> compare_outputs(const OutputSets& sets, const Tolerance& tolerance = {});

// Returns the largest difference over all outputs, relative to the largest element of the peer's output. Infinite if
// the numbers of outputs, the shapes or the dtypes differ; NaN if no element is finite, since nothing is compared then.
double largest_difference(const std::vector<NDArray>& ours, const std::vector<NDArray>& peer);

// Returns the output with the largest share_of_limit(). `outputs` must not be empty.
const OutputComparison& worst_of(const std::vector<OutputComparison>& outputs);

// Returns a sentence that says whether the mismatch suggests a wrong compilation or a wrong import.
std::string explain_mismatch(const OutputComparison& output, const std::string& peer);

}  // namespace headrace::tools
