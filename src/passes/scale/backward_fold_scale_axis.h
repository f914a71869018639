// BackwardFoldScaleAxis: a multiplication after a convolution moves into its weights.
//
//   multiply(nn.conv2d(x, w), s)                ->   nn.conv2d(x, w')             w' = w * s, along the output channels
//   multiply(nn.bias_add(nn.dense(x, w), b), s) ->   nn.bias_add(nn.dense(x, w'), b')
//   multiply(add(nn.conv2d(x, v), nn.conv2d(x, w)), s)   ->   add(nn.conv2d(x, v'), nn.conv2d(x, w'))
//   multiply(nn.relu(add(...)), s)              ->   nn.relu(add(...))            where every scale is positive
//
// s has one value, or one a channel. The path leads through add and subtract of two such products, or of one and an
// operand with one value a channel, nn.bias_add, and ops whose result has the type of their first argument and that
// commute with the factors (ops::kCommutingFactors: nn.relu, nn.leaky_relu and nn.prelu with positive ones), down to
// convolutions over 1 to 3 axes (any groups and layouts without parts), their transposes without groups, nn.dense,
// nn.matmul. Every value on it must have one use, or both forms would be computed. Floats only, of one dtype. Batch
// norm arrives here as multiply and add (SimplifyInference).
//
// Products of constants are constants, and none may overflow or underflow (joined_constants.h). Where s, w or b is not
// constant, w' is `multiply(w, ...)`, computed at each run. Before parameters are bound that is wanted; afterwards it
// costs a pass over the weights to save one over the result, which most kernels fuse anyway. So it happens only with
// `with_variables`. s is not moved when it has an effect or depends on when it is evaluated.
//
// How it works: each multiplication walks down its data operand, from users to operands, and collects the calls that
// must change (way_down). The walk succeeds when every path ends in weights that lie along the scaled axis. Only then
// are the calls rebuilt from the weights up, so a scale moves completely or not at all, and no call is ever computed in
// both forms. Every value on the way must have one use; the counts of uses are kept up to date while nodes are rebuilt.
// A scale passes at most kMostScaledCalls calls, which keeps the pass linear.
//
// Needs types, and constants where FoldConstant makes them. Runs before SimplifyExpr, which joins the additions it
// brings together. Preserves results up to rounding.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule backward_fold_scale_axis(IRModule module, const pass::PassContext& context, bool with_variables = true);

}  // namespace headrace::passes
