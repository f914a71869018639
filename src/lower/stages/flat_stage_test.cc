#include "lower/stages/flat_stage.h"

#include <gtest/gtest.h>

#include "kit/float_buffer.h"
#include "lower/compute_rule.h"
#include "lower/loops/guard_range.h"

namespace headrace::lower {
namespace {

using tir::Combiner;

// y[o, p] = sum over c of x[o / 4 * 3 + c, p] * w[o, c], 12 o
tir::ComputeStage grouped_sum(const Buffer& x, const Buffer& w) {
  return reduce_stage(kit::float_buffer("y", {12, 50}), Combiner::sum, {make_int(3)},
                      [&](const Index& i, const Index& r) {
                        return load(x, {floor_div(i[0], make_int(4)) * 3 + r[0], i[1]}) * load(w, {i[0], r[0]});
                      });
}

TEST(Flatten, GroupsBecomeAnAxis) {
  const Buffer x = kit::float_buffer("x", {9, 50}), w = kit::float_buffer("w", {12, 3});
  FlatBuffers buffers;
  const FlatStage flat = flatten(grouped_sum(x, w), buffers);
  EXPECT_EQ(flat.extents, (std::vector<int64_t>{3, 4, 50}));
  const std::vector<Access> accesses = accesses_of(flat.value);
  ASSERT_EQ(accesses.size(), 2u);
  const Affine &of_x = accesses[0].index, &of_w = accesses[1].index;
  EXPECT_EQ(of_x.coefficient(flat.axes[0].get()), 3 * 50);
  EXPECT_EQ(of_x.coefficient(flat.axes[1].get()), 0) << "members of a group share what they read";
  EXPECT_FALSE(of_x.hides(flat.axes[1].get()));
  EXPECT_EQ(of_w.coefficient(flat.axes[0].get()), 4 * 3);
  EXPECT_EQ(of_w.coefficient(flat.axes[1].get()), 3);
  const Affine place = to_affine(flat.place, {});
  EXPECT_EQ(place.coefficient(flat.axes[0].get()), 4 * 50);
  EXPECT_EQ(place.coefficient(flat.axes[1].get()), 50);
}

// The last axis is taken apart where what it reads lies in groups, and stays for vectors otherwise.
TEST(Flatten, TheLastAxisIsTakenApartWhereItReadsPackedRows) {
  const Buffer x = kit::float_buffer("x", {9, 7}), w = kit::float_buffer("w", {6, 7, 8});
  const auto product = [&](bool is_packed) {
    return reduce_stage(kit::float_buffer("y", {9, 48}), Combiner::sum, {make_int(7)},
                        [&](const Index& i, const Index& r) {
                          const PrimExpr inside = is_packed ? floor_mod(i[1], make_int(8)) : make_int(0);
                          return load(x, {i[0], r[0]}) * load(w, {floor_div(i[1], make_int(8)), r[0], inside});
                        });
  };
  FlatBuffers buffers;
  const FlatStage flat = flatten(product(true), buffers);
  EXPECT_EQ(flat.extents, (std::vector<int64_t>{9, 6, 8}));
  const Affine of_w = accesses_of(flat.value)[1].index, place = to_affine(flat.place, {});
  EXPECT_EQ(of_w.coefficient(flat.axes[1].get()), 7 * 8);
  EXPECT_EQ(of_w.coefficient(flat.axes[2].get()), 1) << "vectors read what lies side by side";
  EXPECT_EQ(place.coefficient(flat.axes[1].get()), 8);
  EXPECT_EQ(place.coefficient(flat.axes[2].get()), 1);
  EXPECT_EQ(flatten(product(false), buffers).extents, (std::vector<int64_t>{9, 48}));
}

// Rows of `width` read from `size` elements with a border, every `stride`-th, for two phases of it.
tir::ComputeStage padded(int64_t size, int64_t width, int64_t stride, int64_t border) {
  const Buffer x = kit::float_buffer("x", {6, size});
  return map_stage(kit::float_buffer("y", {2, 6, width}), [&](const Index& i) {
    const PrimExpr at = i[2] * stride + i[0] - border;
    const std::vector<PrimExpr> inside{make_binary(BinaryOp::ge, at, make_int(0)),
                                       make_binary(BinaryOp::lt, at, make_int(size)),
                                       make_binary(BinaryOp::lt, i[1], make_int(5))};
    return guarded(all_of(inside), load(x, {i[1], at}), make_float(0));
  });
}

TEST(FindInterior, HoldsForEveryPhase) {
  FlatBuffers buffers;
  const FlatStage flat = flatten(padded(40, 22, 2, 3), buffers);
  // 2 x + phase - 3 in [0, 40) for phases 0 and 1
  const auto interior = find_interior(flat, 16);
  ASSERT_TRUE(interior.has_value());
  EXPECT_EQ(interior->begin, 2);
  EXPECT_EQ(interior->end, 21);
  const auto* guard = interior->value.as<IntrinsicCallNode>();
  ASSERT_NE(guard, nullptr) << "the condition on rows stays";
  EXPECT_TRUE(guard->args[0].is<BinaryNode>());
  EXPECT_FALSE(to_affine(guard->args[0].as<BinaryNode>()->a, {}).coefficient(flat.axes.back().get()) != 0);
}

TEST(FindInterior, NoneWhereItIsSmallOrUnknown) {
  FlatBuffers buffers;
  EXPECT_FALSE(find_interior(flatten(padded(40, 22, 2, 3), buffers), 20).has_value());
  const Buffer x = kit::float_buffer("x", {50}), y = kit::float_buffer("y", {50});
  const auto plain = map_stage(y, [&](const Index& i) { return load(x, {i[0]}); });
  EXPECT_FALSE(find_interior(flatten(plain, buffers), 1).has_value());
  const auto odd = map_stage(y, [&](const Index& i) {
    return guarded(make_binary(BinaryOp::eq, i[0], make_int(7)), load(x, {i[0]}), make_float(0));
  });
  EXPECT_FALSE(find_interior(flatten(odd, buffers), 1).has_value());
}

TEST(FlatStage, JoinsAxesThatAreWalkedAsOne) {
  const Buffer x = kit::float_buffer("x", {2, 8, 7, 7}), bias = kit::float_buffer("bias", {8}),
               y = kit::float_buffer("y", {2, 8, 7, 7});
  FlatBuffers buffers;
  const FlatStage sum = flatten(map_stage(y, [&](const Index& i) { return load(x, i) + load(bias, {i[1]}); }), buffers);
  EXPECT_EQ(sum.extents, (std::vector<int64_t>{2, 8, 49}));
  const FlatStage copy = flatten(map_stage(y, [&](const Index& i) { return load(x, i); }), buffers);
  EXPECT_EQ(copy.extents, std::vector<int64_t>{784});
  const FlatStage pool =
      flatten(reduce_stage(kit::float_buffer("z", {2, 8}), tir::Combiner::sum, {make_int(7), make_int(7)},
                           [&](const Index& i, const Index& r) { return load(x, {i[0], i[1], r[0], r[1]}); }),
              buffers);
  EXPECT_EQ(pool.extents, std::vector<int64_t>{16});
  EXPECT_EQ(pool.reduce_extents, std::vector<int64_t>{49});
}

TEST(FlatStage, KeepsAxesThatAreUsedElsewhere) {
  const Buffer x = kit::float_buffer("x", {4, 5}), y = kit::float_buffer("y", {4, 5});
  FlatBuffers buffers;
  const FlatStage stage =
      flatten(map_stage(y,
                        [&](const Index& i) {
                          return guarded(make_binary(BinaryOp::lt, i[0], make_int(2)), load(x, i), make_float(0));
                        }),
              buffers);
  EXPECT_EQ(stage.extents, (std::vector<int64_t>{4, 5}));
  const FlatStage transposed = flatten(
      map_stage(kit::float_buffer("z", {5, 4}), [&](const Index& i) { return load(x, {i[1], i[0]}); }), buffers);
  EXPECT_EQ(transposed.extents, (std::vector<int64_t>{5, 4}));
}

}  // namespace
}  // namespace headrace::lower
