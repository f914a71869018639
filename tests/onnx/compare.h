// Whether a computed tensor is the one that a test case expects.
#pragma once

#include <string>

#include "frontend/onnx/file/tensor.h"
#include "tensor/ndarray.h"

namespace headrace::onnx_test {

// The tolerance that the issue states for the ONNX data: |got - expected| <= kAbsolute + kRelative * |expected|.
inline constexpr double kRelative = 1e-3;
inline constexpr double kAbsolute = 1e-7;
// Tolerance for bfloat16, whose 8 bits are coarser: the distance to a neighbour. The data of the standard truncates
// where Headrace rounds to nearest even.
inline constexpr double kRelativeBfloat16 = 1.0 / 128;

// Returns an empty text when `got` has the expected dtype, shape and elements: integers and bools exact, floats within
// the tolerance, NaN where NaN is expected. Else returns the first difference.
std::string difference(const NDArray& got, const onnx::TensorData& expected);

// Returns the tensor as an NDArray of its own; UserError for strings and complex numbers.
NDArray to_array(const onnx::TensorData& data);

}  // namespace headrace::onnx_test
