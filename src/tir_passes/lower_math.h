// LowerMath: exp, log, tanh and erf of float32 become polynomials, the same for scalars and for vectors of any width.
//
//   exp(x)  ->  2^n * p(x - n * ln 2),   n = round(x / ln 2)
//
// Without it each lane of a vector is a call of the C library. Results are within 2.5 ulp (erf: 3) of the exact value
// for every x, subnormals, infinities and NaN included; tested against the C library in float64. Only additions,
// multiplications, divisions and bit operations are used, so that results are the same on every machine. Runs last,
// because its result is large and shares its parts.
// After S. Moshier, Cephes Mathematical Library, single precision (expf.c, logf.c, tanhf.c, ndtrf.c).
#pragma once

#include "tir/stmt.h"

namespace headrace::tir_passes {

tir::PrimFunc lower_math(const tir::PrimFunc& function);

}  // namespace headrace::tir_passes
