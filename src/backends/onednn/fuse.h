// Fusion: what follows a convolution or a dense layer is done on its result before that is stored. A concat that begins
// as an earlier one does reads the result of that, so that the memory of one can be part of the other's.
//
//   y = convolution(x, w); z = y + b; r = z + s; relu(r)   ->   convolution(x, w, b) {sum s, relu}
//   c = concat(x, y); d = concat(x, y, z)                  ->   c = concat(x, y); d = concat(c, z)
#pragma once

#include "backends/onednn/network.h"

namespace headrace_onednn {

// Fuses in place. An op is taken into the one that makes its operand when nothing else reads that, and when the other
// operand, if there is one, is there early enough.
void fuse(Network& network);

}  // namespace headrace_onednn
