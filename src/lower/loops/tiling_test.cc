// The tiles that a convolution with channels in blocks of one vector gets, by the ports of the machine.
#include "lower/loops/tiling.h"

#include <gtest/gtest.h>

#include "kit/float_buffer.h"
#include "lower/compute_rule.h"

namespace headrace::lower {
namespace {

using tir::Combiner;

constexpr int64_t kLanes = 16;

// y[o, w, l] = sum over c, k of x[c, w, k] * weight[o, c, k, l]; with `depthwise`, of one channel each.
FlatStage blocked_stage(int64_t blocks, int64_t width, bool depthwise = false) {
  const Buffer x = kit::float_buffer("x", {4, width, kLanes}), w = kit::float_buffer("w", {blocks, 4, kLanes, kLanes}),
               y = kit::float_buffer("y", {blocks, width, kLanes});
  const auto value = [&](const Index& i, const Index& r) {
    return load(x, {r[0], i[1], depthwise ? i[2] : r[1]}) * load(w, {i[0], r[0], r[1], i[2]});
  };
  FlatBuffers buffers;
  return flatten(reduce_stage(y, Combiner::sum, {make_int(4), make_int(kLanes)}, value), buffers);
}

Tiling tiling_of(const FlatStage& stage, int fma_ports) {
  const cost::Machine machine{.vector_bits = 512, .vector_registers = 32, .fma_ports = fma_ports, .fma_port_bits = 512};
  return choose_tiling(Reduction(stage, machine));
}

// 9 loads for 8 multiply-adds take longer than these where two of each start in a cycle.
TEST(Tiling, TwoPortsGetPlanes) {
  const Tiling tiling = tiling_of(blocked_stage(4, 28), 2);
  ASSERT_TRUE(tiling.third);
  EXPECT_EQ(*tiling.third, 0u);
  const int64_t rows = tiling.rows[0].size, planes = tiling.planes[0].size;
  EXPECT_GE(rows * planes, 2 * (rows + planes) / 2) << rows << " rows, " << planes << " planes";
  EXPECT_LE(rows * planes + rows + planes, 30) << "results, weights and values of the data are in registers";
  EXPECT_EQ(count_of(tiling.planes) * planes, 4) << "no rest";
}

TEST(Tiling, OnePortNeedsNoPlanes) { EXPECT_FALSE(tiling_of(blocked_stage(4, 28), 1).third); }
TEST(Tiling, OneBlockHasNoPlanes) { EXPECT_FALSE(tiling_of(blocked_stage(1, 28), 2).third); }
// Planes share no loads where each channel reads its own data.
TEST(Tiling, DepthwiseHasNoPlanes) { EXPECT_FALSE(tiling_of(blocked_stage(4, 28, true), 2).third); }

// y[m, o, l] = sum over k of x[m, k] * w[o, k, l]: a product with a packed matrix.
FlatStage packed_product(int64_t rows, int64_t blocks, int64_t terms) {
  const Buffer x = kit::float_buffer("x", {rows, terms}), w = kit::float_buffer("w", {blocks, terms, kLanes}),
               y = kit::float_buffer("y", {rows, blocks, kLanes});
  FlatBuffers buffers;
  return flatten(
      reduce_stage(y, Combiner::sum, {make_int(terms)},
                   [&](const Index& i, const Index& r) { return load(x, {i[0], r[0]}) * load(w, {i[1], r[0], i[2]}); }),
      buffers);
}

// A matrix that the cache does not keep is read once, not once for each block of rows.
TEST(Tiling, LargeMatricesAreTheOuterLoop) {
  const FlatStage large = packed_product(128, 48, 768), small = packed_product(128, 4, 768);
  EXPECT_TRUE(tiling_of(large, 2).third);
  EXPECT_TRUE(tiling_of(large, 2).columns_first);
  EXPECT_FALSE(tiling_of(small, 2).columns_first);
  EXPECT_FALSE(tiling_of(packed_product(8, 48, 768), 2).columns_first) << "one block of rows";
}

}  // namespace
}  // namespace headrace::lower
