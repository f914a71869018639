// ForwardFoldScaleAxis: a multiplication before a convolution moves into its weights.
//
//   nn.conv2d(multiply(x, s), w)                  ->  nn.conv2d(x, w')
//   nn.dense(nn.relu(multiply(x, s)), w)          ->  nn.dense(nn.relu(x), w')
//   nn.conv2d(nn.max_pool2d(multiply(x, s)), w)   ->  nn.conv2d(nn.max_pool2d(x), w')
//
// w' is w * s along the channels that are read; the last two need positive scales.
// s is a constant with one value, or one a channel; the weights are constants. The way leads through nn.relu,
// nn.leaky_relu, nn.max_pool2d (positive scales), nn.avg_pool2d, nn.global_avg_pool2d and zero padding, up to nn.conv2d
// (without groups, or depthwise), nn.conv2d_transpose without groups, nn.dense, nn.matmul; every value on it is used
// once. Floats only, of one dtype, and no product may overflow or lose digits to underflow
// (simplify/joined_constants.h).
//
// Needs types, and constants where FoldConstant makes them; after BackwardFoldScaleAxis, which needs no positive scales
// where both could. Preserves results up to rounding.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule forward_fold_scale_axis(const IRModule& module, const pass::PassContext& context);

}  // namespace headrace::passes
