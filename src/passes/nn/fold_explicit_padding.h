// FoldExplicitPadding: padding of its own becomes padding of the convolution or pool that reads it.
//
//   nn.conv2d(nn.pad(%x, 0f, pad_width=[[0, 0], [0, 0], [1, 1], [2, 2]]), %w)
//                                             ->  nn.conv2d(%x, %w, padding=[1, 2, 1, 2])
//   nn.max_pool2d(nn.pad(%x, -inf, ...))      ->  nn.max_pool2d(%x, padding=[...])
//   nn.avg_pool2d(nn.pad(%x, 0f, ...))        ->  nn.avg_pool2d(%x, padding=[...], count_include_pad=True)
//
// So do convolutions and pools of one and of three spatial axes. The padding is constant, of spatial axes alone, and
// adds to what the op pads already. An average that leaves its own padding out of the count stays; so do pools in ceil
// mode, and a pool whose windows could lie in the padding alone. Layouts of one letter an axis. Needs the type of the
// data. Preserves results to the last bit where weights are finite (a weight times a zero that was padded is not
// computed any more).
#pragma once

#include "relay/expr.h"

namespace headrace::passes {

IRModule fold_explicit_padding(const IRModule& module);

}  // namespace headrace::passes
