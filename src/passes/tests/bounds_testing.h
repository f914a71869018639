// Helpers of the tests of BoundOutputs: they cut outputs out of their buffers.
#pragma once

#include <cstring>

#include "passes/forms/bound_outputs.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {

// Returns `whole` cut to `extent` indices of `axis`.
inline NDArray cut(const NDArray& whole, size_t axis, int64_t extent) {
  Shape shape = whole.shape();
  shape[axis] = extent;
  NDArray part = NDArray::empty(shape, whole.dtype());
  int64_t inner = 1;
  for (size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  for (int64_t at = 0; at < part.num_elements(); ++at) {
    const int64_t row = at / inner / std::max<int64_t>(extent, 1);
    const int64_t from = (row * whole.shape()[axis] + at / inner % std::max<int64_t>(extent, 1)) * inner + at % inner;
    const auto bytes = static_cast<size_t>(whole.dtype().bytes());
    std::memcpy(part.data<std::byte>() + static_cast<size_t>(at) * bytes,
                whole.data<std::byte>() + static_cast<size_t>(from) * bytes, bytes);
  }
  return part;
}

// Returns the first `count` results of a main that was bounded, each as long as its extent says.
inline std::vector<NDArray> cut_outputs(const relay::FunctionNode& main, const std::vector<NDArray>& results,
                                        size_t count) {
  std::vector<NDArray> outputs(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(count));
  for (const BoundedOutput& row : bounded_outputs_of(main))
    outputs[row.output] = cut(outputs[row.output], row.axis, element_as_int(results[row.extent].tensor(), 0));
  return outputs;
}

}  // namespace headrace::passes
