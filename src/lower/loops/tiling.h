// How the results of a reduction are cut into register tiles. Private to lower/.
#pragma once

#include "lower/loops/reduction.h"

namespace headrace::lower {

// Rows along the axis `second`, columns along the last axis, planes along the axis `third`.
struct Tiling {
  std::optional<size_t> second, third;
  bool shares = false;         // rows share reads, not only the overlap of their taps
  bool columns_first = false;  // outside the rows
  std::vector<Piece> rows, columns, planes;
  size_t unrolled = 0;  // reduced axes, from the last
};

// Chooses a tiling for vectors along the last axis of the result. The idea: a tile of rows x columns results stays in
// registers while all terms are added, so that each load of one operand serves all columns and each load of the other
// all rows. The number of vector registers limits the tile. `second` is the row axis, chosen so that rows share reads.
// With `columns_first` the loop over column blocks (and planes) is outside, so that the operand that columns read stays
// in the cache while all rows use it.
//
// A processor that starts two wide multiply-adds a cycle and loads two operands a cycle needs more reuse than one row
// of vectors gives it: with channels in blocks of one vector (NCHW16c), 8 rows take 9 loads for 8 multiply-adds. There
// the tile has planes, too: blocks of output channels, which share the loads of the data as rows share those of the
// weights. The numbers of rows and planes are those of the least cycles by the ports (tile_cycles in tiling.cc).
Tiling choose_tiling(const Reduction& reduction);

}  // namespace headrace::lower
