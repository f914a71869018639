// FoldScaleAxis: multiplications move into the weights beside them.
//
//   multiply(nn.conv2d(x, w), s)            ->   nn.conv2d(x, w')     BackwardFoldScaleAxis, along the outputs
//   nn.conv2d(nn.relu(multiply(x, s)), w)   ->   nn.conv2d(nn.relu(x), w')     ForwardFoldScaleAxis, along the inputs
//
// It is the sequence of BackwardFoldScaleAxis, ForwardFoldScaleAxis and FoldConstant, as in Relay: a context's level,
// `disabled_pass`, `required_pass`, trace and instruments see these three. A context that requires FoldScaleAxis, as a
// call of it by itself does, requires those of them that it does not disable.
//
// The backward pass runs first: it moves a scale between two convolutions under weaker conditions. Needs types, and
// constants where FoldConstant makes them. Runs before SimplifyExpr, which joins the additions it brings together.
// Preserves results up to rounding.
//
// Called by name it also folds weights and factors that are not constants; builds leave those alone, since the products
// would be computed at each run, and have no FoldConstant here, since constants were folded before. The option
// "relay.FoldScaleAxis.fold_variables" overrides the first.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

inline constexpr const char* kFoldScaleAxis = "FoldScaleAxis";

// Runs those of the steps that the context lets run.
IRModule fold_scale_axis(IRModule module, const pass::PassContext& context, const std::vector<pass::Pass>& steps);

}  // namespace headrace::passes
