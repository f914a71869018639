// FastMath: renames transcendental functions to their fast forms.
//
//   exp(x)  ->  fast_exp(x)        tanh(x)  ->  fast_tanh(x)
//   erf(x)  ->  fast_erf(x)        nn.softmax(x, axis)  ->  nn.fast_softmax(x, axis)
//
// The fast forms are separate ops, so that a backend may compute them with less precision. Native code and the
// interpreter compute them as the plain ones, so results keep every bit and nothing becomes faster. Runs late, at level
// 4 only, because the laws of SimplifyExpr and the gradients are defined for the plain forms. Needs no types. Keeps
// attributes and spans.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule fast_math(const IRModule& module);

}  // namespace headrace::passes
