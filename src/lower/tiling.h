// How the results of a reduction are cut into register tiles. Private to lower/.
#pragma once

#include "lower/reduction.h"

namespace headrace::lower {

// Rows along the axis `second`, columns along the last axis.
struct Tiling {
  std::optional<size_t> second;
  bool shares = false;         // rows share reads, not only the overlap of their taps
  bool columns_first = false;  // outside the rows
  std::vector<Piece> rows, columns;
  size_t unrolled = 0;  // reduced axes, from the last
};

// For vectors along the last axis.
Tiling choose_tiling(const Reduction& reduction);

}  // namespace headrace::lower
