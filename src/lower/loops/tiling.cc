#include "lower/loops/tiling.h"

namespace headrace::lower {

namespace {

// The most results in a register tile along one axis; more brings no more reuse.
constexpr int64_t kMostRows = 8;
// The most copies of a tile's operations when reduced axes are unrolled. kMostCopies applies to unrolling all of them,
// for the overlap of windows; kMostSharingCopies to the innermost of few terms, where loops would cost as much as their
// body.
constexpr int64_t kMostCopies = 96, kMostSharingCopies = 160;
constexpr int64_t kFewTerms = 64;

// Returns whether the operand that columns read (the data of a convolution) should stay in the cache while all rows use
// it, instead of being read again for each block of rows. That pays when the operand does not fit into the cache as a
// whole and the rows cause less traffic when read again. (Matrix of 768 x 3072 times 128 x 768: 21 ms with rows
// outside, 5.9 with columns.)
bool puts_columns_first(const Reduction& reduction, const Tiling& tiling) {
  // With few terms a result, stores dominate, and columns first would make a stream of them for each row (1x1
  // convolution, 16 to 96 channels of 112x112: 0.40 ms with rows outside, 0.53 with columns).
  constexpr int64_t kLeastTerms = 128;
  if (reduction.num_terms() < kLeastTerms) return false;
  int64_t of_rows = 0, of_columns = 0;
  for (const Access& access : reduction.accesses) {
    const Buffer& buffer = access.load->buffer;
    const int64_t bytes = *as_int(buffer->shape[0]) * static_cast<int64_t>(buffer->dtype.bytes());
    (access.index.coefficient(reduction.last_axis()) != 0 ? of_columns : of_rows) += bytes;
  }
  // Planes, too, are columns of a matrix where there are no other axes: those of a product with packed weights.
  const bool has_planes = tiling.third && reduction.stage.axes.size() == 3;
  const int64_t row_blocks = count_of(tiling.rows);
  const int64_t column_blocks = count_of(has_planes ? tiling.planes : tiling.columns);
  return of_columns > reduction.machine.kept_bytes && of_columns + of_rows * column_blocks < of_columns * row_blocks;
}

// The most rows of a tile with planes, and the most planes.
constexpr int64_t kMostRowsOfPlanes = 14, kMostPlanes = 4;
// The cycles of a term beside the loads and multiply-adds of its tile.
constexpr double kLoopCycles = 0.5;

// Returns the cycles that one term of a tile takes by the machine's ports, where each row loads a value for all lanes
// and each plane a vector: those of its multiply-adds, of its loads, or the latency of one multiply-add.
double tile_cycles(const Reduction& reduction, int64_t rows, int64_t planes, int64_t vectors) {
  const cost::Machine& machine = reduction.machine;
  const double starts = machine.fma_ports * std::min(1.0, 1.0 * machine.fma_port_bits / machine.vector_bits);
  const auto adds = static_cast<double>(rows * planes * vectors), loads = static_cast<double>(rows + planes * vectors);
  return std::max({adds / starts, loads / machine.load_ports, 1.0 * machine.fma_latency_cycles}) + kLoopCycles;
}

double tile_cycles(const Reduction& reduction, const std::vector<Piece>& rows, const std::vector<Piece>& planes,
                   int64_t vectors) {
  double cycles = 0;
  for (const Piece& row : rows) {
    for (const Piece& plane : planes) {
      cycles += static_cast<double>(row.count * plane.count) * tile_cycles(reduction, row.size, plane.size, vectors);
    }
  }
  return cycles;
}

// Returns the axis of planes: the last one along which only what columns read changes, such as blocks of output
// channels. Nothing where there is none, or where rows read vectors as columns do (a depthwise convolution).
std::optional<size_t> plane_axis(const Reduction& reduction, size_t second) {
  const FlatStage& stage = reduction.stage;
  const PrimVarNode* last = reduction.last_axis();
  const bool rows_read_vectors = std::any_of(reduction.accesses.begin(), reduction.accesses.end(), [&](const auto& a) {
    return a.index.coefficient(last) != 0 && a.index.coefficient(stage.axes[second].get()) != 0;
  });
  if (rows_read_vectors) return std::nullopt;
  for (size_t i = stage.axes.size() - 1; i-- > 0;) {
    const PrimVarNode* axis = stage.axes[i].get();
    const auto is_shared = [&](const Access& access) {
      return access.index.coefficient(last) != 0 || (access.index.coefficient(axis) == 0 && !access.index.hides(axis));
    };
    if (i != second && std::all_of(reduction.accesses.begin(), reduction.accesses.end(), is_shared)) return i;
  }
  return std::nullopt;
}

// Returns whether a tile's results, the vectors of its planes and the values of its rows are in registers. Where there
// are 32 of them, LLVM loads the values of all rows ahead: a tile of 14 x 2 spilled then (7x7 convolution of an image:
// 88 in place of 157 GFLOP/s); with 16 it loads them one by one, and more results are worth more (ResNet-50 by AVX2:
// 113 ms, 125 with fewer). Two registers stay free.
bool fits_registers(const Reduction& reduction, int64_t rows, int64_t planes) {
  const int64_t registers = reduction.machine.vector_registers;
  return rows * planes + planes + (registers >= 32 ? rows : 0) <= registers - 2;
}

// Adds planes to a tile of one vector a row where that makes the loops a tenth faster or more.
void add_planes(const Reduction& reduction, Tiling& tiling, int64_t vectors) {
  const FlatStage& stage = reduction.stage;
  if (!tiling.shares || tiling.columns.size() != 1 || count_of(tiling.columns) != 1 || vectors > 1) return;
  const auto third = plane_axis(reduction, *tiling.second);
  if (!third) return;
  const int64_t all_rows = stage.extents[*tiling.second], all_planes = stage.extents[*third];
  double least = 0.9 * tile_cycles(reduction, tiling.rows, {{0, 1, all_planes}}, vectors);
  for (int64_t planes = 2; planes <= std::min(kMostPlanes, all_planes); ++planes) {
    for (int64_t rows = 1; rows <= std::min(kMostRowsOfPlanes, all_rows); ++rows) {
      if (!fits_registers(reduction, rows, planes)) break;
      const std::vector<Piece> row_pieces = cut(all_rows, rows), plane_pieces = cut(all_planes, planes);
      const double cycles = tile_cycles(reduction, row_pieces, plane_pieces, vectors);
      if (cycles >= least) continue;
      least = cycles;
      tiling.third = third;
      tiling.rows = row_pieces;
      tiling.planes = plane_pieces;
    }
  }
}

// Returns how many reduced axes, from the last, fit into one loop body together with all results of a tile. A body that
// shares nothing is unrolled completely or not at all: its only gain is that taps of neighbouring rows are read once.
size_t unrolled_axes(const Reduction& reduction, int64_t results, bool shares) {
  const std::vector<int64_t>& extents = reduction.stage.reduce_extents;
  size_t axes = 0;
  int64_t copies = results;
  if (shares && reduction.num_terms() > kFewTerms) return 0;
  while (axes < extents.size()) {
    copies *= extents[extents.size() - 1 - axes];
    if (copies > (shares ? kMostSharingCopies : kMostCopies)) return shares ? axes : 0;
    ++axes;
  }
  return axes;
}

}  // namespace

Tiling choose_tiling(const Reduction& reduction) {
  const FlatStage& stage = reduction.stage;
  const size_t last = stage.axes.size() - 1;
  const int64_t width = stage.extents[last], lanes = reduction.lanes, terms = reduction.num_terms();
  const bool wide = reduction.machine.vector_registers >= 32;
  // One tile for the whole axis where that is of few vectors, else two vectors at a time.
  const bool whole = wide && vectors_of(width, lanes).size() <= 4;
  const int64_t columns = whole ? width : std::min(width, 2 * lanes);
  Tiling tiling;
  tiling.second = reduction.sharing_axis(reduction.last_axis());
  tiling.shares = tiling.second.has_value();
  // With few terms a result, rows bring work enough to a tile even when they share nothing but the taps' overlap.
  if (!tiling.shares && last > 0 && terms * 4 <= kMostCopies) tiling.second = last - 1;
  const int64_t vectors = static_cast<int64_t>(vectors_of(columns, lanes).size());
  // Some registers stay free for the operands.
  const int64_t budget = std::max<int64_t>(1, (reduction.machine.vector_registers - (wide ? 8 : 4)) / vectors);
  const int64_t most = tiling.shares ? kMostRows : std::max<int64_t>(1, kMostCopies / (terms * vectors));
  const int64_t rows = tiling.second ? std::min({stage.extents[*tiling.second], budget, most}) : 1;
  tiling.rows = tiling.second ? cut(stage.extents[*tiling.second], rows) : std::vector<Piece>{{0, 1, 1}};
  tiling.columns = cut(width, columns);
  tiling.planes = {{0, 1, 1}};
  add_planes(reduction, tiling, vectors);
  const int64_t results = tiling.rows[0].size * tiling.planes[0].size * vectors;
  tiling.unrolled = unrolled_axes(reduction, results, tiling.shares);
  tiling.columns_first = tiling.shares && puts_columns_first(reduction, tiling);
  return tiling;
}

}  // namespace headrace::lower
