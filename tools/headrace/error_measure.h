// Measures the error between two tensors.
#pragma once

#include <cstdint>

#include "tensor/ndarray.h"

namespace headrace::tools {

// Returns the largest magnitude of a finite element; 1 if all of them are zero or none is finite.
double magnitude_of(const NDArray& tensor);

struct ErrorMeasure {
  double error = 0;
  int64_t compared = 0;  // elements that are finite in both
};

// Returns the largest difference of two elements, relative to `magnitude`. Compares integers and bools of any size
// exactly. The error is infinite if one element is NaN or infinite and the other is not the same, and if the shapes
// differ.
ErrorMeasure relative_error(const NDArray& want, const NDArray& got, double magnitude);

// How much an element may differ: by `absolute` + `relative` x its magnitude in the reference.
struct ElementTolerance {
  double relative, absolute;
};

// As relative_error, but each difference is relative to the tolerance of its own element: above 1 it exceeds it.
ErrorMeasure error_in_tolerances(const NDArray& want, const NDArray& got, ElementTolerance tolerance);

}  // namespace headrace::tools
