#include "lower/schedule.h"

#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

using Values = std::unordered_map<const PrimVarNode*, PrimExpr>;

// Below this many scalar operations a loop stays on one thread: starting the others costs more.
constexpr int64_t kMinParallelWork = 16384;

int64_t extent_of(const PrimExpr& dim) {
  const auto value = as_int(dim);
  HEADRACE_CHECK(value.has_value(), "a schedule needs static shapes, not {}", to_string(dim));
  return *value;
}

// How an expression moves with a variable.
enum class Motion { none, unit, other };

// Motion of an integer expression that is linear in the variable.
Motion motion_of(const PrimExpr& index, const PrimVarNode* var) {
  if (index.get() == var) return Motion::unit;
  if (const auto* node = index.as<BinaryNode>()) {
    const Motion a = motion_of(node->a, var), b = motion_of(node->b, var);
    if (a == Motion::none && b == Motion::none) return Motion::none;
    if (node->op == BinaryOp::add && (a == Motion::none || b == Motion::none)) return a == Motion::none ? b : a;
    if (node->op == BinaryOp::sub && b == Motion::none) return a;
    return Motion::other;
  }
  bool uses = false;
  for_each(index, [&](const PrimExpr& e) { uses = uses || e.get() == var; });
  return uses ? Motion::other : Motion::none;
}

// Whether a vector along `var` reads consecutive elements, or one for all lanes, and evaluates all it holds.
bool vectorizes(const PrimExpr& value, const PrimVarNode* var) {
  bool fits = true;
  for_each(value, [&](const PrimExpr& e) {
    if (const auto* call = e.as<IntrinsicCallNode>()) fits = fits && call->intrinsic != Intrinsic::if_then_else;
    const auto* load = e.as<BufferLoadNode>();
    if (load == nullptr) return;
    for (size_t i = 0; i < load->indices.size(); ++i) {
      const Motion motion = motion_of(load->indices[i], var);
      fits = fits && (motion == Motion::none || (motion == Motion::unit && i + 1 == load->indices.size()));
    }
  });
  return fits;
}

// A range cut into pieces: `count` pieces of `size`, then the rest in smaller ones.
struct Piece {
  int64_t begin, size, count;
};
std::vector<Piece> cut(int64_t extent, int64_t size) {
  std::vector<Piece> pieces;
  if (extent / size > 0) pieces.push_back({0, size, extent / size});
  if (extent % size > 0) pieces.push_back({extent / size * size, extent % size, 1});
  return pieces;
}
// A width as vector widths: full vectors, then powers of two.
std::vector<std::pair<int64_t, int64_t>> vectors_of(int64_t width, int64_t lanes) {
  std::vector<std::pair<int64_t, int64_t>> result;
  int64_t at = 0;
  for (int64_t w = lanes; w >= 1; w /= 2) {
    for (; width - at >= w; at += w) result.emplace_back(at, w);
  }
  return result;
}

class StageScheduler {
 public:
  StageScheduler(const ComputeStage& stage, const ScheduleOptions& options) : stage_(stage), options_(options) {
    for (const PrimExpr& dim : stage.axis_extents()) extents_.push_back(extent_of(dim));
    lanes_ = std::max(1, options.vector_bits / std::max(8, stage.value->dtype.bits()));
  }

  Stmt emit() {
    if (std::find(extents_.begin(), extents_.end(), 0) != extents_.end()) return make_seq({});
    return stage_.combiner == Combiner::none ? emit_map() : emit_reduction();
  }

 private:
  size_t rank() const { return extents_.size(); }

  int64_t work() const {
    int64_t total = 1;
    for (const int64_t e : extents_) total *= e;
    for (const PrimExpr& e : stage_.reduce_extents) total *= extent_of(e);
    return total;
  }

  // Loops over the axes before `end` around what `body` makes of their values; the outermost that iterates is parallel.
  Stmt outer_loops(size_t end, const std::function<Stmt(Values&)>& body) {
    Values values;
    std::vector<std::pair<PrimVar, int64_t>> loops;
    for (size_t i = 0; i < end; ++i) {
      if (extents_[i] == 1) {
        values[stage_.axes[i].get()] = make_int(0);
        continue;
      }
      PrimVar var = make_prim_var(stage_.axes[i]->name_hint);
      values[stage_.axes[i].get()] = var;
      loops.emplace_back(var, extents_[i]);
    }
    Stmt result = body(values);
    for (size_t i = loops.size(); i-- > 0;) {
      const ForKind kind = i == 0 && may_parallel() ? ForKind::parallel : ForKind::serial;
      result = make_for(loops[i].first, make_int(0), make_int(loops[i].second), kind, result);
    }
    return result;
  }
  bool may_parallel() const { return work() >= kMinParallelWork; }

  Array<PrimExpr> output_index(const Values& values) const {
    Array<PrimExpr> index;
    for (size_t i = 0; i < rank(); ++i) {
      const PrimExpr& at = values.at(stage_.axes[i].get());
      index.push_back(stage_.is_partial() ? at + stage_.origin[i] : at);
    }
    return index;
  }

  // A loop over `piece`: its count of blocks, each handled by `body` at the block's first element.
  static Stmt block_loop(const Piece& piece, const char* name, ForKind kind,
                         const std::function<Stmt(const PrimExpr&)>& body) {
    if (piece.count == 1) return body(make_int(piece.begin));
    PrimVar var = make_prim_var(name);
    return make_for(var, make_int(0), make_int(piece.count), kind, body(make_int(piece.begin) + var * piece.size));
  }

  Stmt emit_map() {
    if (rank() == 0) return make_store(stage_.output, stage_.value, {});
    const size_t last = rank() - 1;
    const bool vector = lanes_ > 1 && vectorizes(stage_.value, stage_.axes[last].get());
    return outer_loops(last, [&](Values& values) {
      const bool alone = std::all_of(extents_.begin(), extents_.end() - 1, [](int64_t e) { return e == 1; });
      const ForKind outer = alone && may_parallel() ? ForKind::parallel : ForKind::serial;
      std::vector<Stmt> parts;
      for (const Piece& piece : cut(extents_[last], vector ? lanes_ : 1)) {
        parts.push_back(block_loop(piece, "block", outer, [&](const PrimExpr& at) {
          PrimVar lane = make_prim_var("lane");
          values[stage_.axes[last].get()] = at + lane;
          Stmt store = make_store(stage_.output, substitute(stage_.value, values), output_index(values));
          return make_for(lane, make_int(0), make_int(piece.size), ForKind::vectorized, store);
        }));
      }
      return make_seq(parts);
    });
  }

  Stmt emit_reduction() {
    const bool across =
        rank() > 0 && extents_.back() > 1 && lanes_ > 1 && vectorizes(stage_.value, stage_.axes.back().get());
    if (across) return emit_across();
    const bool along = !stage_.reduce_axes.empty() && lanes_ > 1 && stage_.value->dtype.is_float() &&
                       extent_of(stage_.reduce_extents.back()) >= lanes_ &&
                       vectorizes(stage_.value, stage_.reduce_axes.back().get());
    return outer_loops(rank(), [&](Values& values) { return along ? emit_along(values) : emit_scalar(values); });
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
    return make_store(stage_.output, result, output_index(values));
  }

  // Serial loops over reduce axes [0, end) around `body`.
  Stmt reduce_loops(size_t end, Values& values, const std::function<Stmt(Values&)>& body) const {
    std::vector<PrimVar> vars;
    for (size_t i = 0; i < end; ++i) {
      vars.push_back(make_prim_var(stage_.reduce_axes[i]->name_hint));
      values[stage_.reduce_axes[i].get()] = vars.back();
    }
    Stmt result = body(values);
    for (size_t i = end; i-- > 0;) {
      result = make_for(vars[i], make_int(0), stage_.reduce_extents[i], ForKind::serial, result);
    }
    return result;
  }

  Stmt emit_scalar(Values& values) const {
    Buffer acc = make_buffer("acc", stage_.value->dtype, to_dims({1}));
    const Array<PrimExpr> at{make_int(0)};
    Stmt loops = reduce_loops(stage_.reduce_axes.size(), values, [&](Values& inner) {
      return make_store(acc, combined(make_load(acc, at), substitute(stage_.value, inner)), at);
    });
    return make_allocate(acc, Scope::registers,
                         make_seq({make_store(acc, stage_.init, at), loops, store_result(make_load(acc, at), values)}));
  }

  // Vectors along the last reduction: one accumulator a lane, joined in order of lanes, then the rest one by one.
  Stmt emit_along(Values& values) const {
    const size_t last = stage_.reduce_axes.size() - 1;
    const int64_t extent = extent_of(stage_.reduce_extents[last]);
    const int64_t blocks = extent / lanes_;
    Buffer acc = make_buffer("acc", stage_.value->dtype, to_dims({lanes_}));
    PrimVar lane = make_prim_var("lane");
    auto lane_loop = [&](const Stmt& body) {
      return make_for(lane, make_int(0), make_int(lanes_), ForKind::vectorized, body);
    };
    Stmt init = lane_loop(make_store(acc, stage_.init, {lane}));
    Stmt main = reduce_loops(last, values, [&](Values& inner) {
      PrimVar block = make_prim_var("block");
      inner[stage_.reduce_axes[last].get()] = block * lanes_ + lane;
      Stmt step = lane_loop(make_store(acc, combined(make_load(acc, {lane}), substitute(stage_.value, inner)), {lane}));
      Stmt loop = make_for(block, make_int(0), make_int(blocks), ForKind::serial, step);
      if (extent % lanes_ == 0) return loop;
      PrimVar rest = make_prim_var("rest");
      inner[stage_.reduce_axes[last].get()] = rest;
      const Array<PrimExpr> first{make_int(0)};
      Stmt tail = make_store(acc, combined(make_load(acc, first), substitute(stage_.value, inner)), first);
      return make_seq(
          {loop, make_for(rest, make_int(blocks * lanes_), make_int(extent % lanes_), ForKind::serial, tail)});
    });
    PrimExpr total = make_load(acc, {make_int(0)});
    for (int64_t i = 1; i < lanes_; ++i) total = combine(stage_.combiner, total, make_load(acc, {make_int(i)}));
    return make_allocate(acc, Scope::registers, make_seq({init, main, store_result(total, values)}));
  }

  // The axis that, beside the last, is tiled in registers: a vector read for the last axis serves all its elements.
  std::optional<size_t> second_axis() const {
    for (size_t i = rank() - 1; i-- > 0;) {
      if (extents_[i] == 1) continue;
      bool shares = false;
      for_each(stage_.value, [&](const PrimExpr& e) {
        const auto* load = e.as<BufferLoadNode>();
        if (load == nullptr) return;
        bool moves_last = false, moves_this = false;
        for (const PrimExpr& index : load->indices) {
          moves_last = moves_last || motion_of(index, stage_.axes.back().get()) != Motion::none;
          moves_this = moves_this || motion_of(index, stage_.axes[i].get()) != Motion::none;
        }
        shares = shares || (moves_last && !moves_this);
      });
      if (shares) return i;
    }
    return std::nullopt;
  }

  // Vectors along the last axis, a register tile of rows x columns, all reductions within it.
  Stmt emit_across() {
    const size_t last = rank() - 1;
    const auto second = second_axis();
    const int64_t columns = std::min<int64_t>(extents_[last], 2 * lanes_);
    const int64_t vectors = static_cast<int64_t>(vectors_of(columns, lanes_).size());
    // A few registers stay free for the operands.
    const int64_t budget = std::max<int64_t>(1, (options_.vector_registers - 4) / std::max<int64_t>(1, vectors));
    const int64_t rows = second ? std::min<int64_t>({extents_[*second], budget, 8}) : 1;
    std::vector<int64_t> saved = extents_;
    if (second) extents_[*second] = 1;  // its loop is the block loop below
    Stmt result = outer_loops_with_rows(last, second, saved, rows, columns);
    extents_ = saved;
    return result;
  }

  Stmt outer_loops_with_rows(size_t last, std::optional<size_t> second, const std::vector<int64_t>& extents,
                             int64_t rows, int64_t columns) {
    const std::vector<Piece> row_pieces = second ? cut(extents[*second], rows) : std::vector<Piece>{{0, 1, 1}};
    const bool outer_iterates = std::any_of(extents_.begin(), extents_.begin() + static_cast<std::ptrdiff_t>(last),
                                            [](int64_t e) { return e > 1; });
    int64_t total = 1;
    for (const int64_t e : extents) total *= e;
    for (const PrimExpr& e : stage_.reduce_extents) total *= extent_of(e);
    const bool parallel = total >= kMinParallelWork;
    // Rows outside, so that threads share no row; the other axes are looped over within a block of rows.
    std::vector<Stmt> parts;
    for (const Piece& row_piece : row_pieces) {
      const bool split = parallel && row_piece.count > 1;
      parts.push_back(
          block_loop(row_piece, "rows", split ? ForKind::parallel : ForKind::serial, [&](const PrimExpr& row) {
            parallel_inner_ = parallel && !split && outer_iterates;
            return loops_within(last, [&](Values& values) {
              std::vector<Stmt> tiles;
              for (const Piece& piece : cut(extents[last], columns)) {
                tiles.push_back(block_loop(piece, "columns", ForKind::serial, [&](const PrimExpr& column) {
                  return tile(values, second, row, row_piece.size, column, piece.size);
                }));
              }
              return make_seq(tiles);
            });
          }));
    }
    return make_seq(parts);
  }

  Stmt loops_within(size_t end, const std::function<Stmt(Values&)>& body) {
    Values values;
    std::vector<std::pair<PrimVar, int64_t>> loops;
    for (size_t i = 0; i < end; ++i) {
      PrimVar var = make_prim_var(stage_.axes[i]->name_hint);
      values[stage_.axes[i].get()] = extents_[i] == 1 ? make_int(0) : PrimExpr(var);
      if (extents_[i] > 1) loops.emplace_back(var, extents_[i]);
    }
    Stmt result = body(values);
    for (size_t i = loops.size(); i-- > 0;) {
      const ForKind kind = i == 0 && parallel_inner_ ? ForKind::parallel : ForKind::serial;
      result = make_for(loops[i].first, make_int(0), make_int(loops[i].second), kind, result);
    }
    return result;
  }

  // rows x columns results in registers.
  Stmt tile(Values values, std::optional<size_t> second, const PrimExpr& row, int64_t rows, const PrimExpr& column,
            int64_t columns) const {
    Buffer acc = make_buffer("acc", stage_.value->dtype, to_dims({rows, columns}));
    // body(r, c) once a row and a vector of columns
    auto each = [&](const std::function<Stmt(Values, const Array<PrimExpr>&)>& body, const Values& outer) {
      std::vector<Stmt> parts;
      for (int64_t r = 0; r < rows; ++r) {
        for (const auto& [at, width] : vectors_of(columns, lanes_)) {
          PrimVar lane = make_prim_var("lane");
          Values inner = outer;
          if (second) inner[stage_.axes[*second].get()] = row + r;
          inner[stage_.axes.back().get()] = column + (lane + at);
          Stmt part = body(std::move(inner), {make_int(r), lane + at});
          parts.push_back(make_for(lane, make_int(0), make_int(width), ForKind::vectorized, part));
        }
      }
      return make_seq(parts);
    };
    Stmt init =
        each([&](const Values&, const Array<PrimExpr>& at) { return make_store(acc, stage_.init, at); }, values);
    Stmt main = reduce_loops(stage_.reduce_axes.size(), values, [&](Values& reduced) {
      return each(
          [&](const Values& inner, const Array<PrimExpr>& at) {
            return make_store(acc, combined(make_load(acc, at), substitute(stage_.value, inner)), at);
          },
          reduced);
    });
    Stmt store =
        each([&](const Values& inner, const Array<PrimExpr>& at) { return store_result(make_load(acc, at), inner); },
             values);
    return make_allocate(acc, Scope::registers, make_seq({init, main, store}));
  }

  const ComputeStage& stage_;
  const ScheduleOptions& options_;
  std::vector<int64_t> extents_;
  int64_t lanes_ = 1;
  bool parallel_inner_ = false;
};

}  // namespace

PrimFunc schedule(const Compute& compute, const std::string& symbol, const ScheduleOptions& options) {
  std::vector<Stmt> stages;
  for (const ComputeStage& stage : compute.stages) stages.push_back(StageScheduler(stage, options).emit());
  Stmt body = make_seq(stages);
  std::vector<Buffer> made = compute.outputs;
  for (size_t i = compute.stages.size(); i-- > 0;) {
    const Buffer& buffer = compute.stages[i].output;
    if (std::find(made.begin(), made.end(), buffer) != made.end()) continue;
    made.push_back(buffer);
    body = make_allocate(buffer, Scope::workspace, body);
  }
  Array<Buffer> params(compute.inputs.begin(), compute.inputs.end());
  for (const Buffer& output : compute.outputs) params.push_back(output);
  return make_prim_func(symbol, params, static_cast<int64_t>(compute.outputs.size()), body);
}

}  // namespace headrace::lower
