// Dot products: sums of x[k] * y[k] where both operands have their elements k one after the other.
//
// Each result of a tile has one accumulator vector. Lane l of it adds up the terms k = l, l + lanes, l + 2 * lanes ...:
//
//   acc[i, lane] = init                                                   i: results of the tile; in registers
//   for the outer reduced axes:
//     for block:   acc[i, lane] += x_i[block * lanes + lane] * y_i[block * lanes + lane]
//     for rest:    acc[i, 0] += x_i[rest] * y_i[rest]                     terms past the last whole vector
//   acc[i, 0..half) += acc[i, half..2 * half), until one lane is left     once a result
//
// A tile is rows of the last axis by rows of an axis that shares reads with it. In a tile of a x b results, a + b loads
// of vectors serve a * b multiply-adds, which also are independent of each other, so that none waits for the result of
// the one before. Joining lanes needs log2(lanes) steps, but only once for each result. An axis shorter than a vector
// has fewer lanes. The order of the terms depends on the lanes, and so on the processor (docs/numerics.md).
#include "lower/loops/reduction.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

// The results of one tile, each where the axes are `results[i]`; accumulators are acc[i, lane].
class AlongTile {
 public:
  AlongTile(const Reduction& reduction, std::vector<Values> results)
      : r_(reduction), results_(std::move(results)), extent_(reduction.stage.reduce_extents.back()) {
    while (lanes_ > extent_) lanes_ /= 2;
    const auto count = static_cast<int64_t>(results_.size());
    acc_ = make_buffer("acc", r_.stage.value->dtype, to_dims({count, lanes_}));
  }

  Stmt emit() const {
    const PrimVar lane = make_prim_var("lane");
    const Stmt init = each_result(
        [&](const Values&, const PrimExpr& i) { return lane_loop(lane, make_store(acc_, r_.stage.init, {i, lane})); });
    const Stmt sum = r_.reduce_loops(last(), 0, {}, [&](const Values& reduced) { return reduce_line(reduced, lane); });
    const Stmt store = each_result([&](const Values& result, const PrimExpr& i) {
      return make_seq({join_lanes(i), r_.store_result(make_load(acc_, {i, make_int(0)}), result)});
    });
    return make_allocate(acc_, Scope::registers, make_seq({init, sum, store}));
  }

 private:
  size_t last() const { return r_.stage.reduce_axes.size() - 1; }

  Stmt each_result(const std::function<Stmt(const Values&, const PrimExpr&)>& body) const {
    std::vector<Stmt> parts;
    for (size_t i = 0; i < results_.size(); ++i) parts.push_back(body(results_[i], make_int(static_cast<int64_t>(i))));
    return make_seq(parts);
  }

  Stmt lane_loop(const PrimVar& lane, const Stmt& body) const {
    return make_for(lane, make_int(0), make_int(lanes_), ForKind::vectorized, body);
  }

  // Reduces the last axis for fixed values of the others: vectors first, then the remaining elements one by one.
  Stmt reduce_line(const Values& reduced, const PrimVar& lane) const {
    const PrimVar block = make_prim_var("block"), rest = make_prim_var("rest");
    const int64_t blocks = extent_ / lanes_;
    const Stmt loop = make_for(block, make_int(0), make_int(blocks), ForKind::serial,
                               lane_loop(lane, step(reduced, block * lanes_ + lane, lane)));
    if (extent_ % lanes_ == 0) return loop;
    return make_seq({loop, make_for(rest, make_int(blocks * lanes_), make_int(extent_ % lanes_), ForKind::serial,
                                    step(reduced, rest, make_int(0)))});
  }

  // Combines acc[i, lane] with the term at `at` of the last reduced axis, for each result.
  Stmt step(const Values& reduced, const PrimExpr& at, const PrimExpr& lane) const {
    return each_result([&](const Values& result, const PrimExpr& i) {
      Values inner = result;
      for (size_t k = 0; k < last(); ++k) {
        const PrimVarNode* axis = r_.stage.reduce_axes[k].get();
        inner[axis] = reduced.at(axis);
      }
      inner[r_.stage.reduce_axes[last()].get()] = at;
      return make_store(acc_, r_.combined(make_load(acc_, {i, lane}), r_.term(inner)), {i, lane});
    });
  }

  // Adds the upper half of the lanes to the lower half, until one is left.
  Stmt join_lanes(const PrimExpr& i) const {
    std::vector<Stmt> steps;
    for (int64_t half = lanes_ / 2; half >= 1; half /= 2) {
      const auto part = [&](int64_t begin) -> PrimExpr {
        return half == 1 ? make_int(begin) : make_ramp(make_int(begin), make_int(1), static_cast<int>(half));
      };
      const PrimExpr low = make_load(acc_, {i, part(0)}), high = make_load(acc_, {i, part(half)});
      steps.push_back(make_store(acc_, combine(r_.stage.combiner, low, high), {i, part(0)}));
    }
    return make_seq(steps);
  }

  const Reduction& r_;
  std::vector<Values> results_;
  int64_t extent_;
  int64_t lanes_ = r_.lanes;
  Buffer acc_;
};

// An axis that tiles cut, or none.
struct CutAxis {
  std::optional<size_t> axis;
  std::vector<Piece> pieces{{0, 1, 1}};
};

PrimExpr first_of(const Piece& piece, const Values& values, const PrimVar& block) {
  return piece.count > 1 ? values.at(block.get()) * piece.size : make_int(piece.begin);
}

// Makes all tiles of one piece of `a` and one of `b`.
Stmt reduce_pieces(const Reduction& reduction, bool parallel, std::optional<size_t> a, const Piece& piece_a,
                   std::optional<size_t> b, const Piece& piece_b) {
  const FlatStage& stage = reduction.stage;
  const PrimVar block_a = make_prim_var("rows"), block_b = make_prim_var("columns");
  std::vector<Loop> loops;
  for (size_t i = 0; i < stage.axes.size(); ++i) {
    if (i != a && i != b) loops.push_back({stage.axes[i], stage.extents[i]});
  }
  if (piece_a.count > 1) loops.push_back({block_a, piece_a.count});
  if (piece_b.count > 1) loops.push_back({block_b, piece_b.count});
  return nest(loops, parallel, {}, [&](const Values& values) {
    std::vector<Values> results;
    for (int64_t i = 0; i < piece_a.size; ++i) {
      for (int64_t j = 0; j < piece_b.size; ++j) {
        Values inner = values;
        if (a) inner[stage.axes[*a].get()] = first_of(piece_a, values, block_a) + i;
        if (b) inner[stage.axes[*b].get()] = first_of(piece_b, values, block_b) + j;
        results.push_back(std::move(inner));
      }
    }
    return AlongTile(reduction, std::move(results)).emit();
  });
}

}  // namespace

bool can_reduce_along(const Reduction& reduction) {
  const FlatStage& stage = reduction.stage;
  return !stage.reduce_axes.empty() && stage.value->dtype.bits() >= 32 && reduction.lanes > 1 &&
         stage.reduce_extents.back() >= 4 && reads_vectors(reduction.accesses, stage.reduce_axes.back().get());
}

// Makes the loops over tiles: some results of the last axis by some of the axis that shares reads with it.
Stmt reduce_along(const Reduction& reduction, bool parallel) {
  const FlatStage& stage = reduction.stage;
  CutAxis a, b;
  if (!stage.axes.empty()) a.axis = stage.axes.size() - 1;
  if (a.axis) b.axis = reduction.sharing_axis(stage.axes[*a.axis].get());
  const bool many = reduction.machine.vector_registers >= 32;
  const int64_t rows_b = b.axis ? std::min<int64_t>(stage.extents[*b.axis], many ? 4 : 2) : 1;
  const int64_t rows_a = a.axis ? std::min<int64_t>(stage.extents[*a.axis], rows_b > 1 ? 4 : 8) : 1;
  if (a.axis) a.pieces = cut(stage.extents[*a.axis], rows_a);
  if (b.axis) b.pieces = cut(stage.extents[*b.axis], rows_b);
  std::vector<Stmt> parts;
  for (const Piece& piece_b : b.pieces) {
    for (const Piece& piece_a : a.pieces)
      parts.push_back(reduce_pieces(reduction, parallel, a.axis, piece_a, b.axis, piece_b));
  }
  return make_seq(parts);
}

}  // namespace headrace::lower
