// How far one tensor is from another.
#pragma once

#include <cstdint>

#include "tensor/ndarray.h"

namespace headrace::tools {

// The largest magnitude of a finite element; 1 where all of them are zero or none is finite, for lack of a scale.
double magnitude_of(const NDArray& tensor);

struct ErrorMeasure {
  double error = 0;
  int64_t compared = 0;  // elements that are finite in both
};

// The largest difference of two elements, relative to `magnitude`. Integers and bools are compared exactly, whatever
// their size. The error is infinite where one element is NaN or infinite and the other is not the same, and where the
// shapes differ.
ErrorMeasure relative_error(const NDArray& want, const NDArray& got, double magnitude);

}  // namespace headrace::tools
