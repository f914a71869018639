// Fusion: what follows a convolution or a dense layer is done on its result before that is stored.
//
//   y = convolution(x, w); z = y + b; r = z + s; relu(r)   ->   convolution(x, w, b) {sum s, relu}
#pragma once

#include "backends/onednn/network.h"

namespace headrace_onednn {

// Fuses in place. An op is taken into the one that makes its operand when nothing else reads that, and when the other
// operand, if there is one, is there early enough.
void fuse(Network& network);

}  // namespace headrace_onednn
