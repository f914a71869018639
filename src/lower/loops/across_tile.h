// One register tile of a reduction whose vectors run along the last axis of the result. Private to lower/.
#pragma once

#include "lower/loops/tiling.h"

namespace headrace::lower {

// The position of a tile: `rows` x `planes` x `columns` results from (row, plane, column) on, where the other axes have
// the given `values`.
struct TilePlace {
  Values values;
  PrimExpr row, plane, column;
  int64_t rows, planes, columns;
};

// Makes the statements that compute a tile, whose results are in registers while they are summed. A long float sum is
// split into blocks, since one sum would lose accuracy with its length.
tir::Stmt across_tile(const Reduction& reduction, const Tiling& tiling, const TilePlace& place);

}  // namespace headrace::lower
