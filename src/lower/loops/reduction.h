// Data and helpers that all layouts of a reduction share. Private to lower/.
#pragma once

#include "lower/loops/stage_loops.h"

namespace headrace::lower {

// A part of a reduced axis.
struct Range {
  PrimExpr begin;
  int64_t extent;
};

// A stage with a reduction, and the facts that layouts need.
struct Reduction {
  Reduction(const FlatStage& stage, const cost::Machine& machine);

  const FlatStage& stage;
  const cost::Machine& machine;
  std::vector<Access> accesses;  // accesses that make up the value
  int64_t lanes;                 // lanes of the value in a vector register

  const PrimVarNode* last_axis() const { return stage.axes.back().get(); }
  // Terms that make one result.
  int64_t num_terms() const;
  // Returns the last axis other than `mover` whose elements share reads: some load depends on `mover` and not on that
  // axis.
  std::optional<size_t> sharing_axis(const PrimVarNode* mover) const;

  // Returns `acc` combined with one more term.
  PrimExpr combined(const PrimExpr& acc, const PrimExpr& term) const;
  // Returns the stage's value at `values` of the axes, reduced ones included.
  PrimExpr term(const Values& values) const;
  // Makes the statement that stores a combined value, after the epilogue.
  tir::Stmt store_result(const PrimExpr& reduced, Values values) const;
  // Loops over the first `count` reduced axes around `body`; the last `unrolled` of them are unrolled. With `first`,
  // over that part of the first axis.
  tir::Stmt reduce_loops(size_t count, size_t unrolled, Values values,
                         const std::function<tir::Stmt(const Values&)>& body,
                         const std::optional<Range>& first = {}) const;
};

// Vectors along the last axis of the result, with a tile of results in registers (tiling.h, across_tile.h).
bool can_reduce_across(const Reduction& reduction);
tir::Stmt reduce_across(const Reduction& reduction, bool parallel);

// Vectors along the last reduced axis: one accumulator a lane for each result of a tile, joined at the end.
bool can_reduce_along(const Reduction& reduction);
tir::Stmt reduce_along(const Reduction& reduction, bool parallel);

}  // namespace headrace::lower
