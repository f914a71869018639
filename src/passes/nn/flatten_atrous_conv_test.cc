// FlattenAtrousConv.
#include "passes/nn/flatten_atrous_conv.h"

#include <gtest/gtest.h>

#include "kit/property.h"
#include "kit/random.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

// A convolution of one axis over blocks: sizes, paddings and crops by chance, such that blocks divide the data.
std::string random_blocks(kit::Random& random) {
  const int64_t block = random.integer(1, 3), width = random.integer(3, 6), before = random.integer(0, 3);
  const int64_t taps = random.integer(1, 2), dilation = random.integer(1, 2), pad = random.integer(0, 1);
  const int64_t after = (block - (width + before) % block) % block + block * random.integer(0, 1);
  const int64_t out = (width + before + after) / block + 2 * pad - dilation * (taps - 1);
  if (out < 1) return random_blocks(random);
  const int64_t begin = std::min(random.integer(0, 2), block * out - 1);
  const int64_t end = std::min(random.integer(0, 2), block * out - 1 - begin);
  return fmt::format(
      "def @main(%x: Tensor[(2, {}, 2), float32], %w: Tensor[({}, 2, 3), float32]) {{\n"
      "  %0 = nn.space_to_batch_nd(%x, block_shape=[{}], paddings=[[{}, {}]]);\n"
      "  %1 = nn.conv1d(%0, %w, padding=[{}], dilation=[{}], data_layout=\"NWC\", kernel_layout=\"WIO\");\n"
      "  nn.batch_to_space_nd(%1, block_shape=[{}], crops=[[{}, {}]])\n}}",
      width, taps, block, before, after, pad, dilation, block, begin, end);
}

// To the last bit, whether or not the crops let it become one convolution.
TEST(FlattenAtrousConv, RandomBlocksKeepTheResults) {
  int num_flat = 0, num_kept = 0;
  kit::Property<std::string> property;
  property.runs_ci = 120;
  property.runs_full = 50000;
  property.generate = random_blocks;
  property.show = [](const std::string& program) { return program; };
  property.check = [&](const std::string& program) {
    const IRModule before = read(program), after = relay::infer_type(flatten_atrous_conv(before));
    const auto& params = before->lookup("main").cast<relay::FunctionNode>()->params;
    const auto argument = [&](size_t i) {
      return ramp(*as_shape(params[i]->type_annotation.cast<TensorTypeNode>()->shape), i == 0 ? -3 : 0.5f);
    };
    (count_calls(after, "nn.batch_to_space_nd") == 0 ? num_flat : num_kept) += 1;
    return difference_of_results(before, after, {argument(0), argument(1)}, 0);
  };
  EXPECT_TRUE(kit::holds(property));
  if (kit::options().seed || kit::options().size == kit::TestSize::kList) return;
  EXPECT_GE(num_flat, kit::options().size == kit::TestSize::kFew ? 2 : 25);
  EXPECT_GE(num_kept, kit::options().size == kit::TestSize::kFew ? 1 : 10);
}

// The ops between are needed by another reader, and stay for it.
TEST(FlattenAtrousConv, AnotherReaderKeepsItsBlocks) {
  const IRModule after =
      run_pass("FlattenAtrousConv", read("def @main(%x: Tensor[(1, 4, 2), float32], %w: Tensor[(1, 2, 3), float32]) {\n"
                                         "  %0 = nn.space_to_batch_nd(%x, block_shape=[2], paddings=[[0, 0]]);\n"
                                         "  %1 = nn.conv1d(%0, %w, data_layout=\"NWC\", kernel_layout=\"WIO\");\n"
                                         "  (nn.batch_to_space_nd(%1, block_shape=[2], crops=[[0, 0]]), sum(%1))\n}"));
  EXPECT_EQ(count_calls(after, "nn.conv1d"), 2);
  EXPECT_EQ(count_calls(after, "nn.batch_to_space_nd"), 0);
}

}  // namespace
}  // namespace headrace::passes
