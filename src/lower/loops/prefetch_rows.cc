#include "lower/loops/prefetch_rows.h"

#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

// With many tiles side by side the rows are soon at hand.
constexpr int64_t kMostTiles = 16;

// Returns the load whose elements are contiguous along the reduced axes: rows of a tile read it, and its columns share
// it (the weight of a convolution). Null when there is none.
const Access* row_operand(const Reduction& reduction, size_t second) {
  const FlatStage& stage = reduction.stage;
  const PrimVarNode* last = reduction.last_axis();
  for (const Access& access : reduction.accesses) {
    int64_t step = 1;
    bool is_line = access.index.coefficient(stage.axes[second].get()) != 0 && access.index.coefficient(last) == 0 &&
                   !access.index.hides(last);
    for (size_t i = stage.reduce_axes.size(); i-- > 0; step *= stage.reduce_extents[i]) {
      is_line = is_line && access.index.coefficient(stage.reduce_axes[i].get()) == step;
    }
    if (is_line) return &access;
  }
  return nullptr;
}

}  // namespace

Stmt prefetch_next_rows(const Reduction& reduction, const Tiling& tiling, const TilePlace& place,
                        const std::optional<Range>& first) {
  const FlatStage& stage = reduction.stage;
  const bool helps =
      tiling.shares && !tiling.columns_first && count_of(tiling.rows) > 1 && count_of(tiling.columns) <= kMostTiles;
  const Access* operand = helps ? row_operand(reduction, *tiling.second) : nullptr;
  if (operand == nullptr) return make_seq({});
  const int64_t per_line = reduction.machine.line_bytes / operand->load->dtype.bytes(), width = stage.extents.back();
  const int64_t range = first ? first->extent : stage.reduce_extents[0];
  const int64_t lines = (reduction.num_terms() / stage.reduce_extents[0] * range + per_line - 1) / per_line;
  Values values = place.values;
  for (const PrimVar& axis : stage.reduce_axes) values[axis.get()] = make_int(0);
  if (first) values[stage.reduce_axes[0].get()] = first->begin;
  const PrimExpr last_row = make_int(stage.extents[*tiling.second] - 1);
  const PrimVar line = make_prim_var("line");
  const PrimExpr offset = (floor_div(place.column * lines, make_int(width)) + line) * per_line;
  std::vector<Stmt> requests;
  for (int64_t r = 0; r < place.rows; ++r) {
    const PrimExpr next = make_binary(BinaryOp::min, place.row + (place.rows + r), last_row);
    values[stage.axes[*tiling.second].get()] = next;
    const PrimExpr at = make_load(operand->load->buffer, {substitute(operand->load->indices[0], values)});
    requests.push_back(make_evaluate(make_intrinsic(Intrinsic::prefetch, DataType::void_(), {at, offset})));
  }
  const int64_t share = (place.columns * lines + width - 1) / width;
  return make_for(line, make_int(0), make_int(share), ForKind::serial, make_seq(requests));
}

}  // namespace headrace::lower
