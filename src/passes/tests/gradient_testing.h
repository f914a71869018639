// What the tests of FirstOrderGradient share: gradients against differences of the function itself, in float64.
#pragma once

#include "kit/property.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {

// The tensors of a value in order, tuples flattened.
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

// How far the gradients are from central differences, at each input element; `step` keeps float32 inputs exact.
inline double worst_error(const IRModule& before, const IRModule& after, const std::vector<NDArray>& args) {
  constexpr double kStep = 1.0 / 4096;
  const auto results = run64(after, args);
  const size_t first = results.size() - args.size();
  double worst = 0;
  for (size_t a = 0; a < args.size(); ++a) {
    for (int64_t i = 0; i < args[a].num_elements(); ++i) {
      const double x = element_as_double(args[a].tensor(), i);
      set_element(args[a].tensor(), i, x + kStep);
      const double above = total(run64(before, args));
      set_element(args[a].tensor(), i, x - kStep);
      const double below = total(run64(before, args));
      set_element(args[a].tensor(), i, x);
      const double want = (above - below) / (2 * kStep), got = element_as_double(results[first + a].tensor(), i);
      const double error = std::abs(want - got) / std::max(1.0, std::abs(want));
      worst = std::isnan(error) ? INFINITY : std::max(worst, error);
    }
  }
  return worst;
}

}  // namespace headrace::passes
