// FoldScaleAxis: multiplications move into the weights beside them.
//
//   multiply(nn.conv2d(x, w), s)            ->   nn.conv2d(x, w')     BackwardFoldScaleAxis, along the outputs
//   nn.conv2d(nn.relu(multiply(x, s)), w)   ->   nn.conv2d(nn.relu(x), w')     ForwardFoldScaleAxis, along the inputs
//
// The backward pass runs first: it moves a scale between two convolutions under weaker conditions. Needs types, and
// constants where FoldConstant makes them. Runs before SimplifyExpr, which joins the additions it brings together.
// Preserves results up to rounding.
//
// Called by name it also folds weights and factors that are not constants; builds leave those alone, since the products
// would be computed at each run. The option "relay.FoldScaleAxis.fold_variables" overrides both.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule fold_scale_axis(const IRModule& module, const pass::PassContext& context, bool with_variables = true);

}  // namespace headrace::passes
