// FastMath: transcendental functions get the names of their fast forms.
//
//   exp(x)  ->  fast_exp(x)        tanh(x)  ->  fast_tanh(x)
//   erf(x)  ->  fast_erf(x)        nn.softmax(x, axis)  ->  nn.fast_softmax(x, axis)
//
// Renames only: the fast forms are ops of their own so that a backend may compute them with fewer digits; native code
// and the interpreter compute them as the plain ones, so that results keep every bit and nothing becomes faster. Runs
// late, at level 4 only: the laws of SimplifyExpr and the gradients know the plain forms. Needs no types; attributes
// and spans stay.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule fast_math(const IRModule& module);

}  // namespace headrace::passes
