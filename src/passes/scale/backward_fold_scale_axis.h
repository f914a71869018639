// BackwardFoldScaleAxis: a multiplication after a convolution moves into its weights.
//
//   multiply(nn.conv2d(x, w), s)                ->   nn.conv2d(x, w')             w' = w * s, along the output channels
//   multiply(nn.bias_add(nn.dense(x, w), b), s) ->   nn.bias_add(nn.dense(x, w'), b')
//   multiply(nn.relu(add(...)), s)              ->   nn.relu(add(...))            where every scale is positive
//
// s is a constant with one value, or one a channel; the weights and what is added on the way are constants, so that
// nothing is left to compute. The way leads through add and subtract of per-channel constants, nn.bias_add, nn.relu,
// nn.leaky_relu and nn.prelu (positive scales), down to nn.conv2d (any groups and layout), nn.conv2d_transpose without
// groups, nn.dense, nn.matmul; every value on it is used once, else both forms would be computed. Floats only, of one
// dtype, and no product may overflow or lose digits to underflow (joined_constants.h). Batch norm comes here as
// multiply and add (SimplifyInference).
//
// Needs types, and constants where FoldConstant makes them. Runs before SimplifyExpr, which joins the additions it
// brings together. Preserves results up to rounding.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule backward_fold_scale_axis(const IRModule& module, const pass::PassContext& context);

}  // namespace headrace::passes
