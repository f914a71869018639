// The loops around the register tiles of a reduction whose vectors run along the last axis of the result.
#include "lower/loops/across_tile.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

class AcrossLoops {
 public:
  AcrossLoops(const Reduction& reduction, bool parallel)
      : r_(reduction), parallel_(parallel), tiling_(choose_tiling(reduction)) {
    for (size_t i = 0; i + 1 < r_.stage.axes.size(); ++i) {
      if (i == tiling_.third) {
        outer_.push_back({plane_, count_of(tiling_.planes)});
      } else if (i != tiling_.second) {
        outer_.push_back({r_.stage.axes[i], r_.stage.extents[i]});
      }
    }
  }

  // Rows that share reads are the outermost loop, so that threads share none. With threads all tiles are parts of one
  // parallel loop; where rows are too few for that, columns are parts as well.
  Stmt emit() const {
    if (tiling_.columns_first) return emit_columns_first();
    if (parallel_) return emit_rows(tiling_.rows);
    std::vector<Stmt> parts;
    for (const Piece& piece : tiling_.rows) parts.push_back(emit_rows({{piece}}));
    return make_seq(parts);
  }

 private:
  Stmt emit_columns_first() const {
    std::vector<Loop> loops = outer_;
    loops.push_back({column_, count_of(tiling_.columns)});
    loops.push_back({row_, count_of(tiling_.rows)});
    return nest(loops, parallel_, {}, [&](const Values& values) {
      return by_piece(tiling_.columns, values, column_, [&](const Piece& columns, const PrimExpr& column) {
        return by_piece(tiling_.rows, values, row_, [&](const Piece& rows, const PrimExpr& row) {
          return tiles(values, rows, row, columns, column);
        });
      });
    });
  }

  Stmt emit_rows(const std::vector<Piece>& pieces) const {
    std::vector<Loop> loops = outer_;
    if (count_of(pieces) > 1) loops.insert(tiling_.shares ? loops.begin() : loops.end(), {row_, count_of(pieces)});
    const bool by_columns = parallel_ && is_few_parts(loops) && count_of(tiling_.columns) > 1;
    if (by_columns) loops.push_back({column_, count_of(tiling_.columns)});
    return nest(loops, parallel_, {}, [&](const Values& values) {
      return by_piece(pieces, values, row_, [&](const Piece& rows, const PrimExpr& row) {
        const auto one_tile = [&](const Piece& columns, const PrimExpr& column) {
          return tiles(values, rows, row, columns, column);
        };
        if (by_columns) return by_piece(tiling_.columns, values, column_, one_tile);
        std::vector<Stmt> tiles;
        for (const Piece& columns : tiling_.columns) {
          tiles.push_back(block_loop(columns, "columns", ForKind::serial,
                                     [&](const PrimExpr& column) { return one_tile(columns, column); }));
        }
        return make_seq(tiles);
      });
    });
  }

  Stmt tiles(const Values& values, const Piece& rows, const PrimExpr& row, const Piece& columns,
             const PrimExpr& column) const {
    return by_piece(tiling_.planes, values, plane_, [&](const Piece& planes, const PrimExpr& plane) {
      return across_tile(r_, tiling_, {values, row, plane, column, rows.size, planes.size, columns.size});
    });
  }

  const Reduction& r_;
  bool parallel_;
  Tiling tiling_;
  PrimVar row_ = make_prim_var("rows"), column_ = make_prim_var("columns"), plane_ = make_prim_var("planes");
  std::vector<Loop> outer_;  // over the axes that no tile cuts, and over blocks of planes
};

}  // namespace

bool can_reduce_across(const Reduction& reduction) {
  const FlatStage& stage = reduction.stage;
  if (stage.axes.empty() || reduction.lanes <= 1) return false;
  const PrimVarNode* last = reduction.last_axis();
  return reads_vectors(reduction.accesses, last) && to_affine(stage.place, {}).coefficient(last) == 1 &&
         (!stage.epilogue || reads_vectors(accesses_of(stage.epilogue), last));
}

Stmt reduce_across(const Reduction& reduction, bool parallel) { return AcrossLoops(reduction, parallel).emit(); }

}  // namespace headrace::lower
