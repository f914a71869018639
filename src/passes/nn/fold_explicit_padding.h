// FoldExplicitPadding: padding of its own becomes padding of the convolution or pool that reads it.
//
//   nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [2, 2]]), %w)
//                                             ->  nn.conv2d(%x, %w, padding=[1, 2, 1, 2])
//   nn.max_pool2d(nn.pad(%x, -inf, ...))      ->  nn.max_pool2d(%x, padding=[...])
//   nn.avg_pool2d(nn.pad(%x, 0f, ...))        ->  nn.avg_pool2d(%x, padding=[...], count_include_pad=True)
//
// Convolutions and pools of one and of three spatial axes work in the same way. The padding must be constant and along
// spatial axes only; it is added to the op's own padding. These stay: an average that does not count its own padding,
// pools in ceil mode, and a pool whose windows could lie in the padding alone. Layouts must have one letter for each
// axis. Needs the type of the data. Preserves results to the last bit where weights are finite (a weight times a padded
// zero is not computed any more).
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule fold_explicit_padding(const IRModule& module);

}  // namespace headrace::passes
