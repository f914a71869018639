// How far outputs are from a reference.
#pragma once

#include <vector>

#include "tensor/ndarray.h"

namespace headrace::tools {

// The largest difference over all outputs, each relative to the largest finite element of the reference's output.
// Where one side is NaN or infinite and the other is not the same, the error is infinite. UserError when the outputs
// are not as many or not of the same shapes, or when no element is finite on both sides: nothing would be compared.
double relative_error(const std::vector<NDArray>& reference, const std::vector<NDArray>& actual);

}  // namespace headrace::tools
