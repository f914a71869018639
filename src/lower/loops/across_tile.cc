#include "lower/loops/across_tile.h"

#include "lower/loops/prefetch_rows.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

// Terms of a float sum before it joins the total.
constexpr int64_t kTermsABlock = 160;

// Returns how many steps of the first reduced axis make a block of a float sum: a divisor of its extent, so that all
// blocks are equal. Nothing where the sum is short.
std::optional<int64_t> block_steps(const Reduction& reduction) {
  const FlatStage& stage = reduction.stage;
  const int64_t terms = reduction.num_terms();
  const bool rounds = stage.combiner == Combiner::sum && stage.value->dtype.is_float();
  if (!rounds || stage.reduce_axes.empty() || terms < 2 * kTermsABlock) return std::nullopt;
  const int64_t extent = stage.reduce_extents[0];
  const int64_t wished = std::max<int64_t>(1, kTermsABlock * extent / terms);
  for (int64_t steps = std::min(wished, extent - 1); steps * 4 > wished; --steps) {
    if (extent % steps == 0) return steps;
  }
  return std::nullopt;
}

// The sizes of a tile are numbers, so its rows, planes and vectors of columns are written out, and only the reduced
// axes are loops:
//
//   acc[rows, planes * columns] = init                      in registers
//   for k in the reduced axes:                              the last `unrolled` of them are unrolled
//     acc[r, p * columns + c] += term(row + r, plane + p, column + c, k)     for each r, p and vector of columns c
//   store acc, after the epilogue
//
// One step of k loads each operand once for the whole tile: what depends on the row alone serves all columns, and what
// depends on the column alone serves all rows. choose_tiling() picks a tile whose accumulators and operands fit the
// registers; columns that no whole vector covers are a narrower vector.
//
// The rounding error of one float sum grows with its length. A long sum is therefore cut along the first reduced axis
// into equal blocks. Each block is summed in acc from zero and then added to `total`, which starts with `init`. `total`
// is in memory, because acc needs the registers; it is touched once a block. Blocks are equal, so one loop makes them
// and there is no code for a rest.
class AcrossTile {
 public:
  AcrossTile(const Reduction& reduction, const Tiling& tiling, const TilePlace& place)
      : r_(reduction), tiling_(tiling), place_(place), acc_(make_results("acc")) {}

  Stmt emit() const {
    const auto steps = block_steps(r_);
    if (steps) return emit_blocks(*steps);
    return make_allocate(acc_, Scope::registers, make_seq({set(acc_, r_.stage.init), reduce({}), store(acc_)}));
  }

 private:
  using Body = std::function<Stmt(const Values&, const Array<PrimExpr>&)>;

  Buffer make_results(const char* name) const {
    return make_buffer(name, r_.stage.value->dtype, to_dims({place_.rows, place_.planes * place_.columns}));
  }

  Stmt emit_blocks(int64_t steps) const {
    const Buffer total = make_results("total");
    const PrimVar block = make_prim_var("block");
    const Stmt join = each(place_.values, [&](const Values&, const Array<PrimExpr>& at) {
      return make_store(total, make_load(total, at) + make_load(acc_, at), at);
    });
    const PrimExpr zero = identity_of(r_.stage.combiner, r_.stage.value->dtype);
    const Stmt one_block =
        make_allocate(acc_, Scope::registers, make_seq({set(acc_, zero), reduce(Range{block * steps, steps}), join}));
    const Stmt blocks =
        make_for(block, make_int(0), make_int(r_.stage.reduce_extents[0] / steps), ForKind::serial, one_block);
    return make_allocate(total, Scope::workspace, make_seq({set(total, r_.stage.init), blocks, store(total)}));
  }

  // Calls body(values, place in a buffer of results) for each row, each plane and each vector of columns.
  Stmt each(const Values& values, const Body& body) const {
    std::vector<Stmt> parts;
    for (int64_t r = 0; r < place_.rows; ++r) {
      for (int64_t p = 0; p < place_.planes; ++p) {
        Values inner = values;
        if (tiling_.second) inner[r_.stage.axes[*tiling_.second].get()] = place_.row + r;
        if (tiling_.third) inner[r_.stage.axes[*tiling_.third].get()] = place_.plane + p;
        for (const auto& [at, width] : vectors_of(place_.columns, r_.lanes)) {
          const PrimVar lane = make_prim_var("lane");
          inner[r_.last_axis()] = place_.column + (lane + at);
          parts.push_back(make_for(lane, make_int(0), make_int(width), ForKind::vectorized,
                                   body(inner, {make_int(r), lane + (p * place_.columns + at)})));
        }
      }
    }
    return make_seq(parts);
  }

  Stmt set(const Buffer& buffer, const PrimExpr& value) const {
    return each(place_.values, [&](const Values&, const Array<PrimExpr>& at) { return make_store(buffer, value, at); });
  }

  // Adds all terms, or those of part `first` of the first reduced axis, to acc.
  Stmt reduce(const std::optional<Range>& first) const {
    const Stmt ahead = prefetch_next_rows(r_, tiling_, place_, first);
    const Stmt loops = r_.reduce_loops(
        r_.stage.reduce_axes.size(), tiling_.unrolled, place_.values,
        [&](const Values& reduced) {
          return each(reduced, [&](const Values& inner, const Array<PrimExpr>& at) {
            return make_store(acc_, r_.combined(make_load(acc_, at), r_.term(inner)), at);
          });
        },
        first);
    return make_seq({ahead, loops});
  }

  Stmt store(const Buffer& buffer) const {
    return each(place_.values, [&](const Values& inner, const Array<PrimExpr>& at) {
      return r_.store_result(make_load(buffer, at), inner);
    });
  }

  const Reduction& r_;
  const Tiling& tiling_;
  const TilePlace& place_;
  Buffer acc_;
};

}  // namespace

Stmt across_tile(const Reduction& reduction, const Tiling& tiling, const TilePlace& place) {
  return AcrossTile(reduction, tiling, place).emit();
}

}  // namespace headrace::lower
