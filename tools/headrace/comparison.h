// Judges the outputs of a compiled model by those of the float64 interpreter and of another runtime.
//
// The interpreter runs the program that was imported: it finds what was compiled wrongly, and agrees with a wrong
// import. The other runtime reads the model by itself: it finds a wrong import, and rounds as we do. So three errors
// are measured for each output: ours to float64, the peer's to float64, and ours to the peer's. All are relative to the
// largest element of the float64 output.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tensor/ndarray.h"

namespace headrace::tools {

// Bounds of a limit that is not given: it is never below `least` nor above `most`.
struct LimitRange {
  double least, most;
};

// float32 1e-5 to 1e-3, float64 1e-12 to 1e-3, float16 0.002 to 0.02, bfloat16 0.016 to 0.1; integers and bools 0.
LimitRange limit_range(DataType dtype);

// The largest allowed error of ours to float64: twice the peer's, within the dtype's range. `peer_error`: infinite, or
// none without a peer, gives the least.
double error_limit(DataType dtype, std::optional<double> peer_error);

// The largest allowed difference of ours and the peer's: our error and what the peer's may be, at most the range's
// most. The peer's may be the largest of four times our error, the range's least, and four units in the last place of
// 1, since functions such as sigmoid are often computed with an absolute error, which counts where all of an output is
// small. All are relative to `magnitude`, the largest element of the output. The limit does not grow with the peer's
// error: a wrong import makes that large, while a network that amplifies rounding shows in our error too.
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
  // How much of its limit the larger of both takes: above 1 is a mismatch.
  double share_of_limit() const;
};

struct OutputSets {
  std::vector<std::string> names;
  std::vector<NDArray> ours, reference;
  std::optional<std::vector<NDArray>> peer;
};

// One comparison an output. `limit`: used as it is for both errors, in place of those above. UserError when the sets
// have not as many outputs, or no element is finite in both: nothing would be compared. An output of another shape or,
// of the peer, of another dtype has an infinite error.
std::vector<OutputComparison> compare_outputs(const OutputSets& sets, std::optional<double> limit);

// The largest difference over all outputs, relative to the largest element of the peer's; infinite where their numbers,
// shapes or dtypes differ.
double largest_difference(const std::vector<NDArray>& ours, const std::vector<NDArray>& peer);

// The output that is nearest to its limit, or furthest above it. There is one.
const OutputComparison& worst_of(const std::vector<OutputComparison>& outputs);

// What a mismatch suggests, in a sentence: that the model was compiled wrongly, or imported wrongly.
std::string explain_mismatch(const OutputComparison& output, const std::string& peer);

}  // namespace headrace::tools
