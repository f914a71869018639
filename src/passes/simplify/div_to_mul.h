// DivToMul: a division by a constant becomes a multiplication by its reciprocal.
//
//   divide(x, c)   ->   multiply(x, 1 / c)        c a floating-point constant
//
// Faster, and rounded once more: results differ in the last bits, except for powers of two. Left alone: a divisor that
// has an element whose reciprocal is zero, infinite, denormal or NaN, since that would change more than bits. Needs no
// types.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule div_to_mul(const IRModule& module);

}  // namespace headrace::passes
