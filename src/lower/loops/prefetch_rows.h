// Prefetches of a tiled reduction. Private to lower/.
#pragma once

#include "lower/loops/across_tile.h"

namespace headrace::lower {

// Prefetches the rows that the next tile reads while the tile at `place` is computed. Those rows are new streams, which
// the hardware prefetcher detects too late (160 terms a row, weights not in L2: 0.32 ms without, 0.25 with). Tiles
// beside each other prefetch a share each. Returns an empty statement where prefetching does not help. With `first`,
// covers that part of the first reduced axis only.
tir::Stmt prefetch_next_rows(const Reduction& reduction, const Tiling& tiling, const TilePlace& place,
                             const std::optional<Range>& first);

}  // namespace headrace::lower
