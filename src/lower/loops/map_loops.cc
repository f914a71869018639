#include "lower/loops/guard_range.h"
#include "lower/loops/stage_loops.h"
#include "tir/rewrite.h"

namespace headrace::lower {

using namespace tir;  // this file writes loop IR and nothing else

namespace {

// Parts that a parallel loop should have, so that threads end at nearly the same time.
constexpr int64_t kMinParts = 64;

}  // namespace

std::vector<Piece> cut(int64_t extent, int64_t size) {
  std::vector<Piece> pieces;
  if (extent / size > 0) pieces.push_back({0, size, extent / size});
  if (extent % size > 0) pieces.push_back({extent / size * size, extent % size, 1});
  return pieces;
}

std::vector<std::pair<int64_t, int64_t>> vectors_of(int64_t width, int64_t lanes) {
  std::vector<std::pair<int64_t, int64_t>> result;
  int64_t at = 0;
  for (int64_t w = lanes; w >= 1; w /= 2) {
    for (; width - at >= w; at += w) result.emplace_back(at, w);
  }
  return result;
}

Stmt block_loop(const Piece& piece, const char* name, ForKind kind, const std::function<Stmt(const PrimExpr&)>& body) {
  if (piece.count == 1) return body(make_int(piece.begin));
  PrimVar var = make_prim_var(name);
  return make_for(var, make_int(0), make_int(piece.count), kind, body(make_int(piece.begin) + var * piece.size));
}

int64_t count_of(const std::vector<Piece>& pieces) {
  int64_t count = 0;
  for (const Piece& piece : pieces) count += piece.count;
  return count;
}

Stmt by_piece(const std::vector<Piece>& pieces, const Values& values, const PrimVar& block,
              const std::function<Stmt(const Piece&, const PrimExpr&)>& body) {
  const Piece& first = pieces.front();
  const auto at = values.find(block.get());
  if (at == values.end()) return body(first, make_int(first.begin));
  const PrimExpr begin = make_int(first.begin) + at->second * first.size;
  if (pieces.size() == 1) return body(first, begin);
  const Stmt then = body(first, begin), otherwise = body(pieces[1], make_int(pieces[1].begin));
  return make_if(make_binary(BinaryOp::lt, at->second, make_int(first.count)), then, otherwise);
}

bool reads_vectors(const std::vector<Access>& accesses, const PrimVarNode* var) {
  return std::all_of(accesses.begin(), accesses.end(), [&](const Access& access) {
    const int64_t step = access.index.coefficient(var);
    return step >= 0 && step <= 2 && !access.index.hides(var);
  });
}

bool is_worth_threads(const FlatStage& stage, bool is_vector, const cost::Machine& machine) {
  if (stage.is_part) return false;
  int64_t work = 1;
  for (const int64_t extent : stage.extents) work *= extent;
  for (const int64_t extent : stage.reduce_extents) work *= extent;
  const bool is_reduction = stage.combiner != Combiner::none;
  return work >= (!is_vector     ? machine.min_scalar_work
                  : is_reduction ? machine.min_reduction_work
                                 : machine.min_map_work);
}

bool is_few_parts(const std::vector<Loop>& loops) {
  int64_t parts = 1;
  for (const Loop& loop : loops) parts *= loop.extent;
  return parts < kMinParts;
}

Stmt nest(const std::vector<Loop>& loops, bool parallel, Values values,
          const std::function<Stmt(const Values&)>& body) {
  size_t joined = 0;
  int64_t parts = 1;
  while (parallel && joined < loops.size() && parts < kMinParts) parts *= loops[joined++].extent;
  std::vector<PrimVar> vars(loops.size());
  for (size_t i = joined; i < loops.size(); ++i) {
    vars[i] = make_prim_var(loops[i].axis->name_hint);
    values[loops[i].axis.get()] = vars[i];
  }
  PrimVar part = make_prim_var("part");
  PrimExpr rest = part;
  for (size_t i = joined; i-- > 0;) {
    const PrimExpr extent = make_int(loops[i].extent);
    values[loops[i].axis.get()] = i == 0 ? rest : floor_mod(rest, extent);
    rest = floor_div(rest, extent);
  }
  Stmt result = body(values);
  for (size_t i = loops.size(); i-- > joined;) {
    result = make_for(vars[i], make_int(0), make_int(loops[i].extent), ForKind::serial, result);
  }
  return joined == 0 ? result : make_for(part, make_int(0), make_int(parts), ForKind::parallel, result);
}

Stmt check_loops(const FlatStage& stage, const std::string& message) {
  std::vector<Loop> loops;
  for (size_t i = 0; i < stage.axes.size(); ++i) loops.push_back({stage.axes[i], stage.extents[i]});
  return nest(loops, false, {},
              [&](const Values& values) { return make_assert(substitute(stage.value, values), message); });
}

namespace {

// Elements begin .. begin + extent - 1 of the last axis, all of one form.
struct Stretch {
  int64_t begin, extent;
  PrimExpr value;
};

std::vector<Stretch> stretches_of(const FlatStage& stage, int64_t lanes) {
  const int64_t extent = stage.extents.back();
  const auto interior = find_interior(stage, lanes);
  if (!interior) return {{0, extent, stage.value}};
  std::vector<Stretch> stretches{{0, interior->begin, stage.value},
                                 {interior->begin, interior->end - interior->begin, interior->value},
                                 {interior->end, extent - interior->end, stage.value}};
  std::erase_if(stretches, [](const Stretch& stretch) { return stretch.extent == 0; });
  return stretches;
}

// Makes one vector of the last axis.
Stmt store_vector(const FlatStage& stage, const PrimExpr& value, Values values, const PrimExpr& at, int64_t width) {
  const PrimVar lane = make_prim_var("lane");
  values[stage.axes.back().get()] = at + lane;
  const Stmt store = make_store(stage.output, substitute(value, values), {substitute(stage.place, values)});
  return make_for(lane, make_int(0), make_int(width), ForKind::vectorized, store);
}

}  // namespace

Stmt map_loops(const FlatStage& stage, const cost::Machine& machine) {
  if (stage.axes.empty()) return make_store(stage.output, stage.value, {stage.place});
  const PrimVar last = stage.axes.back();
  const Affine place = to_affine(stage.place, {});
  const bool is_vector = reads_vectors(accesses_of(stage.value), last.get()) && place.coefficient(last.get()) == 1;
  const int64_t lanes = is_vector ? lanes_of(machine, stage.value->dtype) : 1;
  std::vector<Loop> outer;
  for (size_t i = 0; i + 1 < stage.axes.size(); ++i) outer.push_back({stage.axes[i], stage.extents[i]});
  const bool parallel = is_worth_threads(stage, is_vector, machine);
  // Blocks of the last axis are parts too where rows are too few.
  const std::vector<Piece> blocks = cut(stage.extents.back(), lanes);
  if (parallel && is_few_parts(outer) && count_of(blocks) > 1) {
    const PrimVar block = make_prim_var("block");
    outer.push_back({block, count_of(blocks)});
    return nest(outer, true, {}, [&](const Values& values) {
      return by_piece(blocks, values, block, [&](const Piece& piece, const PrimExpr& at) {
        return store_vector(stage, stage.value, values, at, piece.size);
      });
    });
  }
  const std::vector<Stretch> stretches = stretches_of(stage, lanes);
  return nest(outer, parallel, {}, [&](const Values& values) {
    std::vector<Stmt> parts;
    for (const Stretch& stretch : stretches) {
      for (const Piece& piece : cut(stretch.extent, lanes)) {
        parts.push_back(block_loop(piece, "block", ForKind::serial, [&](const PrimExpr& at) {
          return store_vector(stage, stretch.value, values, at + stretch.begin, piece.size);
        }));
      }
    }
    return make_seq(parts);
  });
}

}  // namespace headrace::lower
