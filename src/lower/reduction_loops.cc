#include "lower/stage_loops.h"
#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

// The most results in a register tile along one axis; more brings no more reuse.
constexpr int64_t kMostRows = 8;
// The most copies of a tile's operations when reduced axes are unrolled: all of them, for the overlap of windows; the
// innermost of few terms, where the loops would cost as much as what is in them.
constexpr int64_t kMostCopies = 96, kMostSharingCopies = 160;
constexpr int64_t kFewTerms = 64;
// Terms of a float sum before it joins the total: a sum in one piece loses accuracy with its length.
constexpr int64_t kTermsABlock = 160;

// A part of a reduced axis.
struct Range {
  PrimExpr begin;
  int64_t extent;
};

class ReductionLoops {
 public:
  ReductionLoops(const FlatStage& stage, const ScheduleOptions& options)
      : stage_(stage),
        options_(options),
        accesses_(accesses_of(stage.value)),
        lanes_(lanes_of(stage.value->dtype, options)),
        parallel_(is_worth_threads(stage, goes_across() || goes_along())) {}

  Stmt emit() const {
    if (goes_across()) return emit_across();
    if (goes_along()) return emit_along();
    return nest(all_loops(), parallel_, {}, [&](const Values& values) { return emit_scalar(values); });
  }

 private:
  const PrimVarNode* last_axis() const { return stage_.axes.back().get(); }

  bool goes_across() const {
    return !stage_.axes.empty() && lanes_ > 1 && reads_vectors(accesses_, last_axis()) &&
           to_affine(stage_.place, {}).coefficient(last_axis()) == 1 && epilogue_reads_vectors(last_axis());
  }
  bool goes_along() const {
    return !stage_.reduce_axes.empty() && stage_.value->dtype.bits() >= 32 && lanes_ > 1 &&
           stage_.reduce_extents.back() >= 4 && reads_vectors(accesses_, stage_.reduce_axes.back().get());
  }
  bool epilogue_reads_vectors(const PrimVarNode* var) const {
    return !stage_.epilogue || reads_vectors(accesses_of(stage_.epilogue), var);
  }

  std::vector<Loop> all_loops() const {
    std::vector<Loop> loops;
    for (size_t i = 0; i < stage_.axes.size(); ++i) loops.push_back({stage_.axes[i], stage_.extents[i]});
    return loops;
  }

  PrimExpr combined(const PrimExpr& acc, const PrimExpr& value) const {
    const auto* product = value.as<BinaryNode>();
    const bool fma = options_.has_fma && stage_.combiner == Combiner::sum && product != nullptr &&
                     product->op == BinaryOp::mul && value->dtype.is_float() && value->dtype.bits() >= 32;
    if (fma) return make_intrinsic(Intrinsic::fma, value->dtype, {product->a, product->b, acc});
    return combine(stage_.combiner, acc, value);
  }

  // What the stage stores for a combined value.
  Stmt store_result(const PrimExpr& reduced, Values values) const {
    PrimExpr result = reduced;
    if (stage_.epilogue) {
      values[stage_.reduced.get()] = reduced;
      result = substitute(stage_.epilogue, values);
    }
    return make_store(stage_.output, result, {substitute(stage_.place, values)});
  }

  // Loops over the first `count` reduced axes around `body`; the last `unrolled` of them are unrolled. With `first`,
  // over that part of the first axis.
  Stmt reduce_loops(size_t count, size_t unrolled, Values values, const std::function<Stmt(const Values&)>& body,
                    const std::optional<Range>& first = {}) const {
    std::vector<PrimVar> vars;
    for (size_t i = 0; i < count; ++i) {
      vars.push_back(make_prim_var(stage_.reduce_axes[i]->name_hint));
      values[stage_.reduce_axes[i].get()] = vars.back();
    }
    Stmt result = body(values);
    for (size_t i = count; i-- > 0;) {
      const ForKind kind = i + unrolled >= count ? ForKind::unrolled : ForKind::serial;
      const Range range = i == 0 && first ? *first : Range{make_int(0), stage_.reduce_extents[i]};
      result = make_for(vars[i], range.begin, make_int(range.extent), kind, result);
    }
    return result;
  }

  Stmt emit_scalar(const Values& values) const {
    Buffer acc = make_buffer("acc", stage_.value->dtype, to_dims({1}));
    const Array<PrimExpr> at{make_int(0)};
    Stmt loops = reduce_loops(stage_.reduce_axes.size(), 0, values, [&](const Values& inner) {
      return make_store(acc, combined(make_load(acc, at), substitute(stage_.value, inner)), at);
    });
    return make_allocate(acc, Scope::registers,
                         make_seq({make_store(acc, stage_.init, at), loops, store_result(make_load(acc, at), values)}));
  }

  // An axis other than the last whose elements share reads: some load moves with `mover` and not with it.
  std::optional<size_t> sharing_axis(const PrimVarNode* mover) const {
    for (size_t i = stage_.axes.size(); i-- > 0;) {
      const PrimVarNode* axis = stage_.axes[i].get();
      if (axis == mover) continue;
      const bool shares = std::any_of(accesses_.begin(), accesses_.end(), [&](const Access& access) {
        return access.index.coefficient(mover) != 0 && access.index.coefficient(axis) == 0 && !access.index.hides(axis);
      });
      if (shares) return i;
    }
    return std::nullopt;
  }

  // --- vectors along the last axis

  int64_t reduce_size() const {
    int64_t size = 1;
    for (const int64_t extent : stage_.reduce_extents) size *= std::max<int64_t>(extent, 1);
    return size;
  }

  // How the results are cut into tiles: rows along `second`, columns along the last axis.
  struct Tiling {
    std::optional<size_t> second;
    bool shares = false;         // rows share reads, not only the overlap of their taps
    bool columns_first = false;  // outside the rows
    std::vector<Piece> rows, columns;
    size_t unrolled = 0;  // reduced axes
  };

  Tiling choose_tiling() const {
    const size_t last = stage_.axes.size() - 1;
    const int64_t width = stage_.extents[last];
    const bool wide = options_.vector_registers >= 32;
    // One tile for the whole axis where that is of few vectors, else two vectors at a time.
    const bool whole = wide && vectors_of(width, lanes_).size() <= 4;
    const int64_t columns = whole ? width : std::min(width, 2 * lanes_);
    Tiling tiling;
    tiling.second = sharing_axis(last_axis());
    tiling.shares = tiling.second.has_value();
    // With few terms a result, rows bring work enough to a tile even when they share nothing but the taps' overlap.
    if (!tiling.shares && last > 0 && reduce_size() * 4 <= kMostCopies) tiling.second = last - 1;
    const int64_t vectors = static_cast<int64_t>(vectors_of(columns, lanes_).size());
    // Some registers stay free for the operands.
    const int64_t budget = std::max<int64_t>(1, (options_.vector_registers - (wide ? 8 : 4)) / vectors);
    const int64_t most = tiling.shares ? kMostRows : std::max<int64_t>(1, kMostCopies / (reduce_size() * vectors));
    const int64_t rows = tiling.second ? std::min({stage_.extents[*tiling.second], budget, most}) : 1;
    tiling.unrolled = unrolled_axes(rows * vectors, tiling.shares);
    tiling.rows = tiling.second ? cut(stage_.extents[*tiling.second], rows) : std::vector<Piece>{{0, 1, 1}};
    tiling.columns = cut(width, columns);
    tiling.columns_first = tiling.shares && puts_columns_first(tiling);
    return tiling;
  }

  // Whether what columns read (the data of a convolution) should stay in the cache while all rows use it, rather than
  // be read anew for each block of rows: when it does not fit into the cache as a whole, and rows bring less again.
  // (Matrix of 768 x 3072 times 128 x 768: 21 ms with rows outside, 5.9 with columns.)
  bool puts_columns_first(const Tiling& tiling) const {
    constexpr int64_t kCacheBytes = 512 * 1024;
    // Few terms a result: stores decide, and columns first means a stream of them for each row (1x1 convolution, 16 to
    // 96 channels of 112x112: 0.40 ms with rows outside, 0.53 with columns).
    constexpr int64_t kLeastTerms = 128;
    if (reduce_size() < kLeastTerms) return false;
    int64_t of_rows = 0, of_columns = 0;
    for (const Access& access : accesses_) {
      const Buffer& buffer = access.load->buffer;
      const int64_t bytes = *as_int(buffer->shape[0]) * static_cast<int64_t>(buffer->dtype.bytes());
      (access.index.coefficient(last_axis()) != 0 ? of_columns : of_rows) += bytes;
    }
    const int64_t row_blocks = count_of(tiling.rows), column_blocks = count_of(tiling.columns);
    return of_columns > kCacheBytes && of_columns + of_rows * column_blocks < of_columns * row_blocks;
  }

  // How many reduced axes, from the last, have room in one loop body with all results of a tile. A body that shares
  // nothing is unrolled whole or not at all: its gain is that taps of neighbouring rows are read once.
  size_t unrolled_axes(int64_t results, bool shares) const {
    size_t axes = 0;
    int64_t copies = results;
    if (shares && reduce_size() > kFewTerms) return 0;
    while (axes < stage_.reduce_axes.size()) {
      copies *= stage_.reduce_extents[stage_.reduce_extents.size() - 1 - axes];
      if (copies > (shares ? kMostSharingCopies : kMostCopies)) return shares ? axes : 0;
      ++axes;
    }
    return axes;
  }

  // The loops around the tiles: rows that share reads are the outermost one, so that threads share none. With threads
  // all tiles are parts of one parallel loop; where rows are too few for that, columns are parts as well.
  Stmt emit_across() const {
    const Tiling tiling = choose_tiling();
    const size_t last = stage_.axes.size() - 1;
    const PrimVar row = make_prim_var("rows"), column = make_prim_var("columns");
    std::vector<Loop> loops;
    for (size_t i = 0; i < last; ++i) {
      if (i != tiling.second) loops.push_back({stage_.axes[i], stage_.extents[i]});
    }
    if (tiling.columns_first) {
      loops.push_back({column, count_of(tiling.columns)});
      loops.push_back({row, count_of(tiling.rows)});
      return nest(loops, parallel_, {}, [&](const Values& values) {
        return by_piece(tiling.columns, values, column, [&](const Piece& width, const PrimExpr& begin) {
          return by_piece(tiling.rows, values, row, [&](const Piece& piece, const PrimExpr& first) {
            return tile(tiling, values, first, piece.size, begin, width.size);
          });
        });
      });
    }
    const auto emit = [&](const std::vector<Piece>& rows) {
      std::vector<Loop> all = loops;
      if (count_of(rows) > 1) all.insert(tiling.shares ? all.begin() : all.end(), {row, count_of(rows)});
      const bool by_columns = parallel_ && is_few_parts(all) && count_of(tiling.columns) > 1;
      if (by_columns) all.push_back({column, count_of(tiling.columns)});
      return nest(all, parallel_, {}, [&](const Values& values) {
        return by_piece(rows, values, row, [&](const Piece& piece, const PrimExpr& first) {
          const auto one_tile = [&](const Piece& width, const PrimExpr& begin) {
            return tile(tiling, values, first, piece.size, begin, width.size);
          };
          if (by_columns) return by_piece(tiling.columns, values, column, one_tile);
          std::vector<Stmt> tiles;
          for (const Piece& width : tiling.columns) {
            tiles.push_back(block_loop(width, "columns", ForKind::serial,
                                       [&](const PrimExpr& begin) { return one_tile(width, begin); }));
          }
          return make_seq(tiles);
        });
      });
    };
    if (parallel_) return emit(tiling.rows);
    std::vector<Stmt> parts;
    for (const Piece& piece : tiling.rows) parts.push_back(emit({{piece}}));
    return make_seq(parts);
  }

  // rows x columns results in registers.
  Stmt tile(const Tiling& tiling, const Values& values, const PrimExpr& row, int64_t rows, const PrimExpr& column,
            int64_t columns) const {
    const std::optional<size_t> second = tiling.second;
    Buffer acc = make_buffer("acc", stage_.value->dtype, to_dims({rows, columns}));
    // body(values, place in acc) once a row and a vector of columns
    auto each = [&](const std::function<Stmt(Values, const Array<PrimExpr>&)>& body, const Values& outer) {
      std::vector<Stmt> parts;
      for (int64_t r = 0; r < rows; ++r) {
        for (const auto& [at, width] : vectors_of(columns, lanes_)) {
          PrimVar lane = make_prim_var("lane");
          Values inner = outer;
          if (second) inner[stage_.axes[*second].get()] = row + r;
          inner[last_axis()] = column + (lane + at);
          Stmt part = body(std::move(inner), {make_int(r), lane + at});
          parts.push_back(make_for(lane, make_int(0), make_int(width), ForKind::vectorized, part));
        }
      }
      return make_seq(parts);
    };
    const auto set = [&](const Buffer& buffer, const PrimExpr& value) {
      return each([&](const Values&, const Array<PrimExpr>& at) { return make_store(buffer, value, at); }, values);
    };
    const auto reduce = [&](const std::optional<Range>& first) {
      const Stmt ahead = prefetch_next_rows(tiling, values, row, rows, column, columns, first);
      const auto body = [&](const Values& reduced) {
        return each(
            [&](const Values& inner, const Array<PrimExpr>& at) {
              return make_store(acc, combined(make_load(acc, at), substitute(stage_.value, inner)), at);
            },
            reduced);
      };
      return make_seq({ahead, reduce_loops(stage_.reduce_axes.size(), tiling.unrolled, values, body, first)});
    };
    const auto store = [&](const Buffer& buffer) {
      return each(
          [&](const Values& inner, const Array<PrimExpr>& at) { return store_result(make_load(buffer, at), inner); },
          values);
    };
    const auto steps = block_steps();
    if (!steps) {
      return make_allocate(acc, Scope::registers, make_seq({set(acc, stage_.init), reduce(std::nullopt), store(acc)}));
    }
    Buffer total = make_buffer("total", stage_.value->dtype, to_dims({rows, columns}));
    PrimVar block = make_prim_var("block");
    const Stmt join = each(
        [&](const Values&, const Array<PrimExpr>& at) {
          return make_store(total, make_load(total, at) + make_load(acc, at), at);
        },
        values);
    const Stmt one_block = make_allocate(acc, Scope::registers,
                                         make_seq({set(acc, identity_of(stage_.combiner, stage_.value->dtype)),
                                                   reduce(Range{block * *steps, *steps}), join}));
    const Stmt blocks =
        make_for(block, make_int(0), make_int(stage_.reduce_extents[0] / *steps), ForKind::serial, one_block);
    return make_allocate(total, Scope::workspace, make_seq({set(total, stage_.init), blocks, store(total)}));
  }

  // What the rows of a tile read and its columns share: the load whose elements lie one after the other along the
  // reduced axes (the weight of a convolution). Null when there is none.
  const Access* row_operand(size_t second) const {
    for (const Access& access : accesses_) {
      int64_t step = 1;
      bool is_line = access.index.coefficient(stage_.axes[second].get()) != 0 &&
                     access.index.coefficient(last_axis()) == 0 && !access.index.hides(last_axis());
      for (size_t i = stage_.reduce_axes.size(); i-- > 0; step *= stage_.reduce_extents[i]) {
        is_line = is_line && access.index.coefficient(stage_.reduce_axes[i].get()) == step;
      }
      if (is_line) return &access;
    }
    return nullptr;
  }

  // Asks for what the next tile of rows will read while this one is computed: its rows are new streams, which the
  // processor sees too late (160 terms a row, weights not in L2: 0.32 ms without, 0.25 with). Tiles side by side ask
  // for a share each.
  Stmt prefetch_next_rows(const Tiling& tiling, Values values, const PrimExpr& row, int64_t rows,
                          const PrimExpr& column, int64_t columns, const std::optional<Range>& first) const {
    constexpr int64_t kCacheLineBytes = 64;
    // With many tiles side by side the rows are soon at hand.
    constexpr int64_t kMostTiles = 16;
    const bool helps =
        tiling.shares && !tiling.columns_first && count_of(tiling.rows) > 1 && count_of(tiling.columns) <= kMostTiles;
    const Access* operand = helps ? row_operand(*tiling.second) : nullptr;
    if (operand == nullptr) return make_seq({});
    const int64_t per_line = kCacheLineBytes / operand->load->dtype.bytes(), width = stage_.extents.back();
    const int64_t range = first ? first->extent : stage_.reduce_extents[0];
    const int64_t lines = (reduce_size() / stage_.reduce_extents[0] * range + per_line - 1) / per_line;
    for (const PrimVar& axis : stage_.reduce_axes) values[axis.get()] = make_int(0);
    if (first) values[stage_.reduce_axes[0].get()] = first->begin;
    const PrimExpr last_row = make_int(stage_.extents[*tiling.second] - 1);
    const PrimVar line = make_prim_var("line");
    const PrimExpr offset = (floor_div(column * lines, make_int(width)) + line) * per_line;
    std::vector<Stmt> requests;
    for (int64_t r = 0; r < rows; ++r) {
      values[stage_.axes[*tiling.second].get()] = make_binary(BinaryOp::min, row + (rows + r), last_row);
      const PrimExpr place = make_load(operand->load->buffer, {substitute(operand->load->indices[0], values)});
      requests.push_back(make_evaluate(make_intrinsic(Intrinsic::prefetch, DataType::void_(), {place, offset})));
    }
    const int64_t share = (columns * lines + width - 1) / width;
    return make_for(line, make_int(0), make_int(share), ForKind::serial, make_seq(requests));
  }

  // How many steps of the first reduced axis make a block of a float sum: a divisor of its extent, so that all blocks
  // are alike. Nothing where the sum is short.
  std::optional<int64_t> block_steps() const {
    const bool rounds = stage_.combiner == Combiner::sum && stage_.value->dtype.is_float();
    if (!rounds || stage_.reduce_axes.empty() || reduce_size() < 2 * kTermsABlock) return std::nullopt;
    const int64_t extent = stage_.reduce_extents[0];
    const int64_t wished = std::max<int64_t>(1, kTermsABlock * extent / reduce_size());
    for (int64_t steps = std::min(wished, extent - 1); steps * 4 > wished; --steps) {
      if (extent % steps == 0) return steps;
    }
    return std::nullopt;
  }

  // --- vectors along the last reduced axis

  // A tile of results: `a` of the last axis by `b` of the axis that shares reads with it.
  Stmt emit_along() const {
    std::optional<size_t> a, b;
    if (!stage_.axes.empty()) a = stage_.axes.size() - 1;
    if (a) b = sharing_axis(stage_.axes[*a].get());
    const bool many = options_.vector_registers >= 32;
    const int64_t rows_b = b ? std::min<int64_t>(stage_.extents[*b], many ? 4 : 2) : 1;
    const int64_t rows_a = a ? std::min<int64_t>(stage_.extents[*a], rows_b > 1 ? 4 : 8) : 1;
    std::vector<Stmt> parts;
    for (const Piece& piece_b : b ? cut(stage_.extents[*b], rows_b) : std::vector<Piece>{{0, 1, 1}}) {
      for (const Piece& piece_a : a ? cut(stage_.extents[*a], rows_a) : std::vector<Piece>{{0, 1, 1}}) {
        parts.push_back(emit_along_piece(a, piece_a, b, piece_b));
      }
    }
    return make_seq(parts);
  }

  Stmt emit_along_piece(std::optional<size_t> a, const Piece& piece_a, std::optional<size_t> b,
                        const Piece& piece_b) const {
    PrimVar block_a = make_prim_var("rows"), block_b = make_prim_var("columns");
    std::vector<Loop> loops;
    for (size_t i = 0; i < stage_.axes.size(); ++i) {
      if (i != a && i != b) loops.push_back({stage_.axes[i], stage_.extents[i]});
    }
    if (piece_a.count > 1) loops.push_back({block_a, piece_a.count});
    if (piece_b.count > 1) loops.push_back({block_b, piece_b.count});
    return nest(loops, parallel_, {}, [&](const Values& values) {
      std::vector<Values> results;
      for (int64_t i = 0; i < piece_a.size; ++i) {
        for (int64_t j = 0; j < piece_b.size; ++j) {
          Values inner = values;
          if (a) inner[stage_.axes[*a].get()] = first_of(piece_a, values, block_a) + i;
          if (b) inner[stage_.axes[*b].get()] = first_of(piece_b, values, block_b) + j;
          results.push_back(std::move(inner));
        }
      }
      return along_tile(results);
    });
  }
  static PrimExpr first_of(const Piece& piece, const Values& values, const PrimVar& block) {
    return piece.count > 1 ? values.at(block.get()) * piece.size : make_int(piece.begin);
  }

  // One accumulator a lane for each result, joined in one order, then the rest of the axis one by one.
  Stmt along_tile(const std::vector<Values>& results) const {
    const size_t last = stage_.reduce_axes.size() - 1;
    const int64_t extent = stage_.reduce_extents[last];
    int64_t lanes = lanes_;
    while (lanes > extent) lanes /= 2;
    const auto count = static_cast<int64_t>(results.size());
    Buffer acc = make_buffer("acc", stage_.value->dtype, to_dims({count, lanes}));
    auto each_result = [&](const std::function<Stmt(const Values&, const PrimExpr&)>& body) {
      std::vector<Stmt> parts;
      for (int64_t i = 0; i < count; ++i) parts.push_back(body(results[static_cast<size_t>(i)], make_int(i)));
      return make_seq(parts);
    };
    // acc[i, lanes from `lane`] combined with the value at `at` of the last reduced axis
    auto step = [&](const Values& reduced, const PrimExpr& at, const PrimExpr& lane) {
      return each_result([&](const Values& result, const PrimExpr& i) {
        Values inner = result;
        for (size_t k = 0; k < last; ++k) inner[stage_.reduce_axes[k].get()] = reduced.at(stage_.reduce_axes[k].get());
        inner[stage_.reduce_axes[last].get()] = at;
        return make_store(acc, combined(make_load(acc, {i, lane}), substitute(stage_.value, inner)), {i, lane});
      });
    };
    PrimVar lane = make_prim_var("lane");
    auto lane_loop = [&](const Stmt& body) {
      return make_for(lane, make_int(0), make_int(lanes), ForKind::vectorized, body);
    };
    Stmt init = each_result(
        [&](const Values&, const PrimExpr& i) { return lane_loop(make_store(acc, stage_.init, {i, lane})); });
    Stmt main = reduce_loops(last, 0, {}, [&](const Values& reduced) {
      PrimVar block = make_prim_var("block"), rest = make_prim_var("rest");
      const int64_t blocks = extent / lanes;
      Stmt loop = make_for(block, make_int(0), make_int(blocks), ForKind::serial,
                           lane_loop(step(reduced, block * lanes + lane, lane)));
      if (extent % lanes == 0) return loop;
      return make_seq({loop, make_for(rest, make_int(blocks * lanes), make_int(extent % lanes), ForKind::serial,
                                      step(reduced, rest, make_int(0)))});
    });
    Stmt store = each_result([&](const Values& result, const PrimExpr& i) {
      return make_seq({join_lanes(acc, i, lanes), store_result(make_load(acc, {i, make_int(0)}), result)});
    });
    return make_allocate(acc, Scope::registers, make_seq({init, main, store}));
  }

  // The upper half of the lanes into the lower one, until one is left.
  Stmt join_lanes(const Buffer& acc, const PrimExpr& i, int64_t lanes) const {
    std::vector<Stmt> steps;
    for (int64_t half = lanes / 2; half >= 1; half /= 2) {
      const auto part = [&](int64_t begin) -> PrimExpr {
        return half == 1 ? make_int(begin) : make_ramp(make_int(begin), make_int(1), static_cast<int>(half));
      };
      const PrimExpr low = make_load(acc, {i, part(0)}), high = make_load(acc, {i, part(half)});
      steps.push_back(make_store(acc, combine(stage_.combiner, low, high), {i, part(0)}));
    }
    return make_seq(steps);
  }

  const FlatStage& stage_;
  const ScheduleOptions& options_;
  std::vector<Access> accesses_;
  int64_t lanes_;
  bool parallel_;
};

}  // namespace

Stmt reduction_loops(const FlatStage& stage, const ScheduleOptions& options) {
  return ReductionLoops(stage, options).emit();
}

}  // namespace headrace::lower
