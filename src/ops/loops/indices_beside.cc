#include "ops/loops/indices_beside.h"

namespace headrace::ops {

void check_indices_beside(const RelationInput& input, const TensorType& data, const TensorType& indices, size_t axis) {
  if (indices->shape.size() != data->shape.size())
    input.fail(
        fmt::format("data and indices need the same number of dimensions: {} and {}", show(data), show(indices)));
  for (size_t i = 0; i < data->shape.size(); ++i) {
    const auto n = as_int(data->shape[i]), k = as_int(indices->shape[i]);
    if (i != axis && n && k && *k > *n)
      input.fail(fmt::format("axis {} of indices is longer than of data: {} and {}", i, show(indices), show(data)));
  }
}

}  // namespace headrace::ops
