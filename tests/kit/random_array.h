// Tensors with values from a fixed sequence.
#pragma once

#include <cstdint>

#include "tensor/ndarray.h"

namespace headrace::kit {

// Returns float32 numbers in [-1, 1), the same for the same seed.
inline NDArray random_array(const Shape& shape, uint32_t seed) {
  NDArray array = NDArray::empty(shape, DataType::float_(32));
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < array.num_elements(); ++i) {
    state = state * 1664525u + 1013904223u;
    array.data<float>()[i] = static_cast<float>(state >> 8) / 8388608.0f - 1.0f;
  }
  return array;
}

}  // namespace headrace::kit
