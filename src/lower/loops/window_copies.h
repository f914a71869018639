// Decides from where a stage reads its windows (tir::WindowRead): from the tensor itself, or from a copy of it.
//
//   out[n, k, p, q] = sum of (inside ? data[n, c, 2 p + r - 1, 2 q + s - 1] : 0) * w[k, c, r, s]
//
//   ->  windows[n, c, a, b, y, x] = inside ? data[n, c, 2 y + a - 1, 2 x + b - 1] : 0
//       out[n, k, p, q] = sum of windows[n, c, r % 2, s % 2, p + r / 2, q + s / 2] * w[k, c, r, s]
//
// The copy is padded and separated by the phases of the strides, so that equal taps of neighbouring windows are
// adjacent in memory, whatever the stride. Channels that are last in the data stay last in the copy; of split channels,
// all parts but the outermost are last. Results keep every bit: expressions read from another place, but the terms and
// their order stay, save that taps outside the data are left out of a walk over the data.
#pragma once

#include "cost/machine.h"
#include "tir/compute.h"

namespace headrace::lower {

// Replaces each stage that reads windows. Such a stage
//   - reads the tensor itself where no window overhangs it and no window skips elements (more than one, where few
//     windows read an element): the guard goes;
//   - keeps its guarded reads where a copy would be disproportionately large (is_wasteful). Where the result does not
//     depend on taps and there are more of them than positions of the data, it walks the positions;
//   - else reads a copy. The rows of the copy of a convolution in NCHW may be joined to one line, so that one vector
//     covers windows of several rows; a stage behind it takes the windows that are used.
// Call before fuse_stages, which joins what precedes and follows. Shapes must be static.
tir::Compute copy_windows(tir::Compute compute, const cost::Machine& machine);

}  // namespace headrace::lower
