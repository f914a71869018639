// From where windows are read, for stages written here; wide_window_test.cc and the cases of the rules compare results.
#include "lower/loops/window_copies.h"

#include <gtest/gtest.h>

#include "kit/float_buffer.h"
#include "lower/compute_rule.h"
#include "lower/lower_function.h"
#include "relay/infer/infer_type.h"
#include "relay/text/parse.h"

namespace headrace::lower {
namespace {

using tir::Compute;
using tir::ComputeStage;

// The compute form of a body over %x, data, and %w, weights.
Compute pure(const Shape& data, const Shape& weight, const std::string& body) {
  register_all_rules();
  const auto function = relay::infer_type(relay::parse_expr(fmt::format(
                                              "fn (%x: Tensor[({}), float32], %w: Tensor[({}), float32]) {{ {} }}",
                                              fmt::join(data, ", "), fmt::join(weight, ", "), body)))
                            .cast<relay::FunctionNode>();
  return compute_of(function);
}

Compute conv(int64_t size, int64_t kernel, const std::string& attrs) {
  return pure({1, 16, size, size}, {8, 16, kernel, kernel}, fmt::format("nn.conv2d(%x, %w{})", attrs));
}

Shape extents_of(const ComputeStage& stage) { return *as_shape(Array<PrimExpr>(stage.axis_extents())); }

// A rule says what is computed, in one stage, whatever is padded, skipped or too narrow for vectors.
TEST(WindowCopies, RulesMakeNone) {
  for (const char* attrs : {"", ", padding=[1, 1]", ", padding=[1, 1], strides=[2, 2]"}) {
    for (const int64_t size : {7, 14, 56}) {
      const Compute compute = conv(size, 3, attrs);
      ASSERT_EQ(compute.stages.size(), 1u) << attrs;
      EXPECT_NE(compute.stages[0].windows, nullptr);
      EXPECT_EQ(compute.stages[0].reduce_extents.size(), 3u);
    }
  }
}

TEST(WindowCopies, WindowsInsideTheDataReadItDirectly) {
  const Compute compute = copy_windows(conv(58, 3, ""), {});
  ASSERT_EQ(compute.stages.size(), 1u);
  EXPECT_EQ(compute.stages[0].windows, nullptr);
  EXPECT_EQ(to_string(compute.stages[0].value).find("if_then_else"), std::string::npos);
}

// Only where vectors run along windows do they need those that lie a stride apart side by side.
TEST(WindowCopies, PhasesAreForVectorsAlongWindows) {
  const Compute plain = copy_windows(conv(56, 3, ", padding=[1, 1], strides=[2, 2]"), {});
  EXPECT_EQ(extents_of(plain.stages[0]), (Shape{1, 16, 2, 2, 29, 29}));
  const Compute blocked = copy_windows(pure({1, 2, 56, 56, 8}, {1, 2, 3, 3, 8, 8},
                                            "nn.conv2d(%x, %w, padding=[1, 1], strides=[2, 2], data_layout=\"NCHW8c\", "
                                            "kernel_layout=\"OIHW8i8o\")"),
                                       {});
  EXPECT_EQ(extents_of(blocked.stages[0]), (Shape{1, 2, 1, 1, 57, 57, 8}));
  const Compute packing =
      copy_windows(pure({1, 3, 56, 56}, {1, 3, 3, 3, 8},
                        "nn.conv2d(%x, %w, padding=[1, 1], strides=[2, 2], kernel_layout=\"OIHW8o\", "
                        "out_layout=\"NCHW8c\")"),
                   {});
  EXPECT_EQ(extents_of(packing.stages[0]), (Shape{1, 3, 1, 1, 57, 57}));
  const Compute direct =
      copy_windows(pure({1, 3, 57, 57}, {1, 3, 3, 3, 8},
                        "nn.conv2d(%x, %w, strides=[2, 2], kernel_layout=\"OIHW8o\", out_layout=\"NCHW8c\")"),
                   {});
  EXPECT_EQ(direct.stages.size(), 1u);
}

// If windows of one tap lie apart, the copy holds only the elements that are read. With few results there is no copy.
TEST(WindowCopies, WindowsOfOneTapAreGathered) {
  const auto blocked = [](int64_t blocks) {
    return copy_windows(pure({1, 2, 56, 56, 8}, {blocks, 2, 1, 1, 8, 8},
                             "nn.conv2d(%x, %w, strides=[2, 2], data_layout=\"NCHW8c\", kernel_layout=\"OIHW8i8o\")"),
                        {});
  };
  const Compute many = blocked(8);
  ASSERT_EQ(many.stages.size(), 2u);
  EXPECT_EQ(extents_of(many.stages[0]), (Shape{1, 2, 1, 1, 28, 28, 8}));
  EXPECT_EQ(blocked(2).stages.size(), 1u);
}

TEST(WindowCopies, PaddedWindowsReadACopy) {
  const Compute compute = copy_windows(conv(56, 3, ", padding=[1, 1]"), {});
  ASSERT_EQ(compute.stages.size(), 2u);
  EXPECT_EQ(extents_of(compute.stages[0]), (Shape{1, 16, 1, 1, 58, 58}));
  EXPECT_TRUE(compute.stages[0].is_layout);
  EXPECT_EQ(to_string(compute.stages[1].value).find("if_then_else"), std::string::npos);
}

// Each phase of a stride has its own plane.
TEST(WindowCopies, StridesHavePhases) {
  const Compute compute = copy_windows(conv(112, 3, ", padding=[1, 1], strides=[2, 2]"), {});
  ASSERT_EQ(compute.stages.size(), 2u);
  EXPECT_EQ(extents_of(compute.stages[0]), (Shape{1, 16, 2, 2, 57, 57}));
}

// Rows of 7 fill half a vector: the copy's rows of 9 follow each other, and 63 windows are computed as 64.
TEST(WindowCopies, ShortRowsAreJoined) {
  const Compute compute = copy_windows(conv(7, 3, ", padding=[1, 1]"), {});
  ASSERT_EQ(compute.stages.size(), 3u);
  EXPECT_EQ(extents_of(compute.stages[1]), (Shape{1, 8, 64}));
  EXPECT_EQ(extents_of(compute.stages[2]), (Shape{1, 8, 7, 7}));
  EXPECT_EQ(compute.outputs[0], compute.stages[2].output);
}

// The width is the machine's: rows of 7 + 2 places, 63 windows, in vectors of 4 lanes; rows of 8 fill those.
TEST(WindowCopies, TheMachineSaysForWhichLanesRowsAreJoined) {
  const cost::Machine narrow{.joined_lanes = 4};
  EXPECT_EQ(copy_windows(conv(8, 3, ", padding=[1, 1]"), narrow).stages.size(), 2u);
  EXPECT_EQ(copy_windows(conv(8, 3, ", padding=[1, 1]"), {}).stages.size(), 3u);
}

TEST(WindowCopies, PoolsKeepTheirRows) {
  const Compute pool = pure({1, 16, 7, 7}, {1}, "nn.max_pool2d(%x, pool_size=[3, 3], padding=[1, 1, 1, 1])");
  ASSERT_EQ(pool.stages.size(), 1u);
  EXPECT_EQ(copy_windows(pool, {}).stages.size(), 2u);
}

// A copy of one plane would have 25 million elements.
TEST(WindowCopies, FarWindowsKeepTheirGuards) {
  const Compute compute = copy_windows(conv(5, 3, ", padding=[2500, 2500], dilation=[2500, 2500]"), {});
  ASSERT_EQ(compute.stages.size(), 1u);
  EXPECT_NE(to_string(compute.stages[0].value).find("if_then_else"), std::string::npos);
  EXPECT_EQ(compute.stages[0].reduce_extents.size(), 3u);
}

TEST(WindowCopies, OtherStagesStay) {
  Buffer x = kit::float_buffer("x", {4}), y = kit::float_buffer("y", {4});
  const Compute compute =
      copy_windows({{x}, {map_stage(y, [&](const Index& i) { return load(x, i) * load(x, i); })}, {y}}, {});
  ASSERT_EQ(compute.stages.size(), 1u);
  EXPECT_EQ(compute.stages[0].output, y);
}

}  // namespace
}  // namespace headrace::lower
