#include "lower/stages/stage_group.h"

#include <gtest/gtest.h>

#include "kit/float_buffer.h"
#include "lower/compute_rule.h"

namespace headrace::lower {
namespace {

using tir::Combiner;
using tir::Compute;

PrimExpr clamp_index(const PrimExpr& at, int64_t size) {
  return make_binary(BinaryOp::min, make_binary(BinaryOp::max, at - 1, make_int(0)), make_int(size - 1));
}

// Windows of `data` padded, then summed with weights: for each channel alone, or over all channels.
Compute convolution(int64_t channels, int64_t size, bool is_depthwise) {
  Buffer data = kit::float_buffer("data", {1, channels, size, size}),
         weight = kit::float_buffer("weight", {channels, 3, 3});
  Buffer windows = kit::float_buffer("windows", {1, channels, size + 2, size + 2});
  Buffer out = kit::float_buffer("out", {1, channels, size, size});
  Compute compute{{data, weight}, {}, {out}};
  compute.stages.push_back(map_stage(windows, [&](const Index& i) {
    return load(data, {i[0], i[1], clamp_index(i[2], size), clamp_index(i[3], size)});
  }));
  compute.stages.push_back(
      reduce_stage(out, Combiner::sum, {make_int(is_depthwise ? 1 : channels), make_int(3), make_int(3)},
                   [&](const Index& i, const Index& r) {
                     const PrimExpr channel = is_depthwise ? i[1] : r[0];
                     return load(windows, {i[0], channel, i[2] + r[1], i[3] + r[2]}) * load(weight, {i[1], r[1], r[2]});
                   }));
  return compute;
}

StageGroup group_at(const Compute& compute, size_t begin, const cost::Machine& machine = {}) {
  return find_group(compute, StageUses(compute), begin, machine);
}

TEST(StageGroup, ChannelsOfADepthwiseConvolutionAreTheSharedLoop) {
  const Compute compute = convolution(32, 14, true);
  const StageGroup group = group_at(compute, 0);
  EXPECT_EQ(group.end, 2u);
  EXPECT_EQ(group.depth, 2u) << "batch and channels";
  ASSERT_EQ(group.local.size(), 1u);
  EXPECT_EQ(group.local[0], compute.stages[0].output);
}

TEST(StageGroup, NothingIsSharedThatCombinationsShare) {
  const StageGroup group = group_at(convolution(32, 14, false), 0);
  EXPECT_EQ(group.end, 1u);
  EXPECT_EQ(group.depth, 0u);
  EXPECT_TRUE(group.local.empty());
}

// Channels of a group read the same data, though each reads at an index of its own channel.
TEST(StageGroup, ChannelsOfAGroupStayTogether) {
  Compute compute = convolution(32, 14, true);
  const Buffer windows = compute.stages[0].output, weight = compute.inputs[1];
  compute.stages[1] =
      reduce_stage(compute.outputs[0], Combiner::sum, {make_int(8)}, [&](const Index& i, const Index& r) {
        const PrimExpr channel = floor_div(i[1], make_int(8)) * 8 + r[0];
        return load(windows, {i[0], channel, i[2], i[3]}) * load(weight, {i[1], make_int(0), make_int(0)});
      });
  Buffer last = kit::float_buffer("last", {1, 32, 14, 14});
  compute.stages.push_back(map_stage(last, [&](const Index& i) { return load(compute.outputs[0], i); }));
  EXPECT_EQ(group_at(compute, 1).depth, 0u);
}

TEST(StageGroup, FewChannelsOrSmallPlanesStayApart) {
  EXPECT_EQ(group_at(convolution(4, 14, true), 0).depth, 0u);
  EXPECT_EQ(group_at(convolution(32, 5, true), 0).depth, 0u);
}

// 9 channels are shared: 9 iterations with 16 x 16 elements of the padded copy inside.
TEST(StageGroup, ThresholdsAreTheMachines) {
  const Compute compute = convolution(9, 14, true);
  EXPECT_GT(group_at(compute, 0).depth, 0u);
  EXPECT_EQ(group_at(compute, 0, {.min_shared_iterations = 10}).depth, 0u);
  EXPECT_EQ(group_at(compute, 0, {.min_inside_elements = 257}).depth, 0u);
}

TEST(StageGroup, ValuesReadElsewhereAreStoredWhole) {
  Compute compute = convolution(32, 14, true);
  const Buffer windows = compute.stages[0].output, last = kit::float_buffer("last", {1, 16, 16});
  compute.stages.push_back(
      map_stage(last, [&](const Index& i) { return load(windows, {i[0], make_int(3), i[1], i[2]}); }));
  compute.outputs.push_back(last);
  const StageGroup group = group_at(compute, 0);
  EXPECT_EQ(group.end, 2u);
  EXPECT_TRUE(group.local.empty());
}

// max, exp of the difference, sum, quotient: one row after the other.
TEST(StageGroup, RowsOfASoftmax) {
  Buffer x = kit::float_buffer("x", {20, 200}), top = kit::float_buffer("top", {20}),
         e = kit::float_buffer("e", {20, 200});
  Buffer sum = kit::float_buffer("sum", {20}), y = kit::float_buffer("y", {20, 200});
  Compute compute{{x}, {}, {y}};
  const auto row = [](const Index& i, const Index& r) { return Index{i[0], r[0]}; };
  compute.stages.push_back(reduce_stage(top, Combiner::max, {make_int(200)},
                                        [&](const Index& i, const Index& r) { return load(x, row(i, r)); }));
  compute.stages.push_back(map_stage(e, [&](const Index& i) { return load(x, i) - load(top, {i[0]}); }));
  compute.stages.push_back(reduce_stage(sum, Combiner::sum, {make_int(200)},
                                        [&](const Index& i, const Index& r) { return load(e, row(i, r)); }));
  compute.stages.push_back(map_stage(y, [&](const Index& i) { return load(e, i) * load(sum, {i[0]}); }));
  const StageGroup group = group_at(compute, 0);
  EXPECT_EQ(group.end, 4u);
  EXPECT_EQ(group.depth, 1u);
  EXPECT_EQ(group.local.size(), 3u);
}

}  // namespace
}  // namespace headrace::lower
