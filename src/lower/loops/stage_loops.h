// Makes the TIR loops of one stage of a kernel: the elements that one compute form gives, over flat buffers.
#pragma once

#include "lower/loops/schedule.h"
#include "lower/stages/flat_stage.h"

namespace headrace::lower {

// Makes the loops of a stage without reduction, with vectors along its last axis where reads and writes along it allow
// them (reads_vectors).
tir::Stmt map_loops(const FlatStage& stage, const cost::Machine& machine);

// Makes the loops of a stage with a reduction, with a tile of results in registers. Vectors run along the last axis of
// the result, or else along the last reduced axis. The order in which a result is combined does not depend on the
// number of threads.
tir::Stmt reduction_loops(const FlatStage& stage, const cost::Machine& machine);

// Makes the loops of a stage of either kind; an empty statement where there are no results.
tir::Stmt stage_loops(const FlatStage& stage, const cost::Machine& machine);

// Makes the loops of a stage that checks operands: for every index an assertion, which fails with `message`.
tir::Stmt check_loops(const FlatStage& stage, const std::string& message);

// --- helpers that the files of this room share ---

// The values of axes.
using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

// `count` blocks of `size` elements, the first of which begins at `begin`.
struct Piece {
  int64_t begin, size, count;
};
// Cuts a range into blocks of `size`, and one of what is left: one piece or two, none of an empty range.
std::vector<Piece> cut(int64_t extent, int64_t size);
// Splits a width into vectors, each by its first element and its lanes: full ones, then powers of two.
std::vector<std::pair<int64_t, int64_t>> vectors_of(int64_t width, int64_t lanes);
// Makes a loop over the blocks of `piece`; `body` gets a block's first element.
tir::Stmt block_loop(const Piece& piece, const char* name, tir::ForKind kind,
                     const std::function<tir::Stmt(const PrimExpr&)>& body);

// Returns the number of blocks of all pieces.
int64_t count_of(const std::vector<Piece>& pieces);
// Makes the statement for the block whose number, counted through all pieces, is `values[block]`: `body` gets its piece
// and its first element, once for each piece, and a branch chooses. Where `values` has no `block`, there is one block.
tir::Stmt by_piece(const std::vector<Piece>& pieces, const Values& values, const PrimVar& block,
                   const std::function<tir::Stmt(const Piece&, const PrimExpr&)>& body);

// Returns whether a vector along `var` reads, in every buffer, consecutive elements, every second element, or one
// element for all lanes.
bool reads_vectors(const std::vector<Access>& accesses, const PrimVarNode* var);
// Returns whether the stage, with or without vectors, takes so long on this machine that several threads help.
bool is_worth_threads(const FlatStage& stage, bool is_vector, const cost::Machine& machine);

struct Loop {
  PrimVar axis;
  int64_t extent;
};
// Returns whether these loops together have fewer steps than threads need to share them evenly.
bool is_few_parts(const std::vector<Loop>& loops);
// Makes a nest of `loops` around `body`, which gets the axes' values. With `parallel`, the threads share the steps of
// the outermost loops, of so many of them that these are enough (is_few_parts).
tir::Stmt nest(const std::vector<Loop>& loops, bool parallel, Values values,
               const std::function<tir::Stmt(const Values&)>& body);

}  // namespace headrace::lower
