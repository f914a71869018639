// FlattenAtrousConv: a convolution between nn.space_to_batch_nd and nn.batch_to_space_nd becomes a dilated one.
//
//   %0 = nn.space_to_batch_nd(%x, block_shape=[2, 2], paddings=[[2, 3], [2, 3]]);
//   %1 = nn.conv2d(%0, %w, data_layout="NHWC", ...);
//   nn.batch_to_space_nd(%1, block_shape=[2, 2], crops=[[0, 1], [0, 1]])
//                                       ->  nn.conv2d(%x, %w, padding=[2, 2, 2, 2], dilation=[2, 2], ...)
//
// The blocks give each convolution every second element along an axis, so its taps are twice as far apart. Both blocks
// must be the same, along spatial axes only, and the convolution must move by one element and pad, as the blocks do,
// with zeros. What is cropped must not be more than what was padded. Works for one, two and three spatial axes, in
// layouts of one letter for each axis. Needs no types. Preserves results to the last bit where weights are finite (a
// weight times a zero of the padding is not computed any more).
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule flatten_atrous_conv(const IRModule& module);

}  // namespace headrace::passes
