// Loops for one stage.
#pragma once

#include "lower/loops/schedule.h"
#include "lower/stages/flat_stage.h"

namespace headrace::lower {

// Makes the loops of a stage without reduction, with vectors along the last axis where its elements are contiguous.
tir::Stmt map_loops(const FlatStage& stage, const cost::Machine& machine);

// Makes the loops of a stage with a reduction. Vectors run along the last axis of the result, or else along the last
// reduced axis, with a tile of results in registers. Each result is combined in one fixed order.
tir::Stmt reduction_loops(const FlatStage& stage, const cost::Machine& machine);

// Makes the loops of a stage of either kind; an empty statement where an axis is empty.
tir::Stmt stage_loops(const FlatStage& stage, const cost::Machine& machine);

// Makes the loops of a check: an assertion for every index.
tir::Stmt check_loops(const FlatStage& stage, const std::string& message);

// --- helpers of these functions ---

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

// A range cut into pieces: `count` pieces of `size`, then the rest in a smaller one.
struct Piece {
  int64_t begin, size, count;
};
std::vector<Piece> cut(int64_t extent, int64_t size);
// Splits a width into vector widths: full vectors, then powers of two.
std::vector<std::pair<int64_t, int64_t>> vectors_of(int64_t width, int64_t lanes);
// Makes a loop over the blocks of `piece`; `body` gets a block's first element.
tir::Stmt block_loop(const Piece& piece, const char* name, tir::ForKind kind,
                     const std::function<tir::Stmt(const PrimExpr&)>& body);

// Blocks of all pieces.
int64_t count_of(const std::vector<Piece>& pieces);
// Calls `body` for block number `values[block]` of all pieces, with the piece and the block's first element; makes a
// branch where there are two pieces. Without that value there is one block.
tir::Stmt by_piece(const std::vector<Piece>& pieces, const Values& values, const PrimVar& block,
                   const std::function<tir::Stmt(const Piece&, const PrimExpr&)>& body);

// Returns whether a vector along `var` reads, in every buffer, consecutive elements, every second element, or one
// element for all lanes.
bool reads_vectors(const std::vector<Access>& accesses, const PrimVarNode* var);
// Returns whether the stage takes so long on this machine that several threads help.
bool is_worth_threads(const FlatStage& stage, bool is_vector, const cost::Machine& machine);

// Makes a nest of `loops` around `body`, which gets the axes' values. With `parallel`, the outermost loops are run by
// all threads, as many of them as it takes for enough parts.
struct Loop {
  PrimVar axis;
  int64_t extent;
};
// Returns whether these loops make fewer parts than threads want.
bool is_few_parts(const std::vector<Loop>& loops);
tir::Stmt nest(const std::vector<Loop>& loops, bool parallel, Values values,
               const std::function<tir::Stmt(const Values&)>& body);

}  // namespace headrace::lower
