// FastMath: transcendental functions become their fast forms.
//
//   exp(x)  ->  fast_exp(x)        tanh(x)  ->  fast_tanh(x)
//   erf(x)  ->  fast_erf(x)        nn.softmax(x, axis)  ->  nn.fast_softmax(x, axis)
//
// The fast forms are ops of their own so that a backend may compute them with fewer digits; here they are computed as
// the plain ones (docs/ops.md), so results stay equal to the last bit. Runs late, at level 4 only: the laws of
// SimplifyExpr and the gradients know the plain forms. Needs no types; attributes and spans stay.
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule fast_math(const IRModule& module);

}  // namespace headrace::passes
