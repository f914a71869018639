// Prefetches of a tiled reduction. Private to lower/.
#pragma once

#include "lower/across_tile.h"

namespace headrace::lower {

// Asks for what the next tile of rows will read while the one at `place` is computed: its rows are new streams, which
// the processor sees too late (160 terms a row, weights not in L2: 0.32 ms without, 0.25 with). Tiles side by side ask
// for a share each. Nothing where that brings nothing. With `first`, for that part of the first reduced axis.
tir::Stmt prefetch_next_rows(const Reduction& reduction, const Tiling& tiling, const TilePlace& place,
                             const std::optional<Range>& first);

}  // namespace headrace::lower
