// Helpers of the tests of FirstOrderGradient: they compare gradients with differences of the function itself, in
// float64.
#pragma once

#include "kit/property.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {

// Appends the tensors of a value in order, tuples flattened.
inline void flatten(const Value& value, std::vector<NDArray>& out) {
  if (value.is<NDArray>()) {
    out.push_back(value.as<NDArray>());
    return;
  }
  const auto* tuple = value.as_node<ADTObj>();
  ASSERT_NE(tuple, nullptr);
  for (const Value& item : tuple->items) flatten(item, out);
}

inline std::vector<NDArray> run64(const IRModule& module, const std::vector<NDArray>& args) {
  const std::vector<Value> values(args.begin(), args.end());
  std::vector<NDArray> out;
  flatten(interp::run(module, "main", values, {.precision = interp::Precision::float64}), out);
  return out;
}

inline double total(const std::vector<NDArray>& tensors) {
  double sum = 0;
  for (const NDArray& tensor : tensors) {
    for (int64_t i = 0; i < tensor.num_elements(); ++i) sum += element_as_double(tensor.tensor(), i);
  }
  return sum;
}

// Returns the central difference of the results' sum by one input element. A power of two as step keeps float32 inputs
// exact.
inline double difference(const IRModule& module, const std::vector<NDArray>& args, size_t a, int64_t i, double step) {
  const double x = element_as_double(args[a].tensor(), i);
  set_element(args[a].tensor(), i, x + step);
  const double above = total(run64(module, args));
  set_element(args[a].tensor(), i, x - step);
  const double below = total(run64(module, args));
  set_element(args[a].tensor(), i, x);
  return (above - below) / (2 * step);
}

// Returns how far the gradients are from differences, at each input element; relative to the larger of 1 and the
// difference. A kink within the step (relu, abs, max) shows as an error, and hardly ever again within one that is so
// much smaller.
inline double worst_error(const IRModule& before, const IRModule& after, const std::vector<NDArray>& args) {
  const auto results = run64(after, args);
  const size_t first = results.size() - args.size();
  double worst = 0;
  for (size_t a = 0; a < args.size(); ++a) {
    for (int64_t i = 0; i < args[a].num_elements(); ++i) {
      const double got = element_as_double(results[first + a].tensor(), i);
      const auto error = [&](double step) {
        const double want = difference(before, args, a, i, step);
        return std::abs(want - got) / std::max(1.0, std::abs(want));
      };
      double least = error(0x1p-12);
      if (!(least < 1e-5)) least = error(0x1p-20);
      worst = std::isnan(least) ? INFINITY : std::max(worst, least);
    }
  }
  return worst;
}

}  // namespace headrace::passes
