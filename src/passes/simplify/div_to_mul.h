// DivToMul: replaces a division by a constant with a multiplication by its reciprocal.
//
//   divide(x, c)   ->   multiply(x, 1 / c)        c a floating-point constant
//
// The multiplication is faster, but the reciprocal is rounded too: results differ in the last bits, except for powers
// of two. Skips divisors with an element whose reciprocal is zero, infinite, denormal or NaN, because results would
// differ in more than the last bits. Needs no types.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule div_to_mul(const IRModule& module);

}  // namespace headrace::passes
