// ForwardFoldScaleAxis: a multiplication before a convolution moves into its weights.
//
//   nn.conv2d(multiply(x, s), w)                  ->  nn.conv2d(x, w')
//   nn.dense(nn.relu(multiply(x, s)), w)          ->  nn.dense(nn.relu(x), w')
//   nn.conv2d(add(multiply(x, s), b), w)          ->  nn.conv2d(add(x, b / s), w')
//   nn.conv2d(nn.max_pool2d(multiply(x, s)), w)   ->  nn.conv2d(nn.max_pool2d(x), w')
//
// w' is w * s along the channels that are read. s has one value, or one a channel. Every way from the product leads to
// weights, through ops that commute with the factors (ops::kCommutingFactors: with constants that are positive nn.relu,
// nn.leaky_relu, nn.prelu and max pools; average pools, nn.global_avg_pool2d and zero padding), add, subtract and
// nn.bias_add of one value a channel (constants without 0), other multiplications, up to convolutions over 1 to 3 axes
// (without groups, or depthwise, in layouts without parts), their transposes without groups, nn.dense, nn.matmul.
// Floats only, of one dtype.
//
// How it works: each multiplication walks from its result to all readers, and on through the ops above (find_ways). The
// walk succeeds when every path ends in an op with weights along the scaled axis; a path to anything else, or to the
// function's result, needs the product and stops the move. In contrast to the backward direction a value may have
// several readers, because each of them gets weights of its own. The changes are planned first, one entry for each
// argument, since several scales may reach one convolution, and one rewrite at the end applies them all.
//
// Constants, variables and `with_variables` are treated as in backward_fold_scale_axis.h.
//
// Needs types, and constants where FoldConstant makes them; after BackwardFoldScaleAxis, which needs no positive scales
// where both could. Preserves results up to rounding.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

IRModule forward_fold_scale_axis(const IRModule& module, const pass::PassContext& context, bool with_variables = true);

}  // namespace headrace::passes
