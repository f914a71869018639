// CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul.
#include "passes/nn/combine_parallel.h"

#include <gmock/gmock.h>

#include "kit/errors.h"
#include "kit/random.h"
#include "passes/tests/pass_testing.h"
#include "relay/visit.h"

namespace headrace::passes {
namespace {

// Four branches with followers that agree, one of another kernel size, one with a stride, weights that are computed.
constexpr const char* kConvs =
    "def @main(%x: Tensor[(1, 2, 3, 3), float32], %w: Tensor[(2, 2, 1, 1), float32]) {\n"
    "  %0 = nn.bias_add(nn.conv2d(%x, %w), const(Tensor[(2), float32], [1, 2]));\n"
    "  %1 = nn.bias_add(nn.conv2d(%x, const(Tensor[(1, 2, 1, 1), float32], [3, 4]), channels=1),"
    " const(Tensor[(1), float32], [3]));\n"
    "  %2 = nn.bias_add(nn.conv2d(%x, exp(%w)), const(Tensor[(2), float32], [-1, 5]));\n"
    "  %3 = multiply(nn.relu(%0), const(Tensor[(2, 1, 1), float32], [2, 3]));\n"
    "  %4 = multiply(nn.relu(%1), const(Tensor[(1, 1, 1), float32], [4]));\n"
    "  %5 = multiply(nn.relu(%2), const(Tensor[(2, 1, 1), float32], [5, 6]));\n"
    "  %6 = nn.conv2d(%x, const(Tensor[(1, 2, 3, 1), float32], [1, 2, 3, 4, 5, 6]));\n"
    "  %7 = nn.conv2d(%x, %w, strides=[2, 2]);\n"
    "  (add(%3, 1f), %4, tanh(%5), %6, %7)\n"
    "}";

// Two groups of different data, the second made of results of the first; a product that another weight is made of.
constexpr const char* kDenses =
    "def @main(%x: Tensor[(2, 2), float32], %w: Tensor[(2, 2), float32]) {\n"
    "  %0 = nn.dense(%x, %w);\n"
    "  %1 = nn.dense(%x, negative(%w), units=2);\n"
    "  %2 = nn.dense(%x, const(Tensor[(3, 2), float32], [1, 2, 3, 4, 5, 6]));\n"
    "  %3 = nn.dense(%x, %0);\n"
    "  %4 = tanh(%1);\n"
    "  %5 = multiply(nn.dense(%4, %w), 2f);\n"
    "  %6 = multiply(nn.dense(%4, exp(%w)), 2f);\n"
    "  %7 = multiply(nn.dense(%4, abs(%w)), 2f);\n"
    "  (%0, %2, %3, %5, %6, %7)\n"
    "}";

constexpr const char* kBatchMatmuls =
    "def @main(%x: Tensor[(2, 1, 2), float32], %w: Tensor[(2, 2, 2), float32]) {\n"
    "  %0 = nn.batch_matmul(%x, %w);\n"
    "  %1 = nn.batch_matmul(%x, exp(%w));\n"
    "  %2 = nn.batch_matmul(%x, strided_slice(%w, begin=[0, 0, 0], end=[2, 1, 2]));\n"
    "  %3 = nn.batch_matmul(%x, %w, transpose_b=False);\n"
    "  (%0, nn.relu(%1), %2, %3)\n"
    "}";

// Three products whose followers differ in what they add, and a fourth of another number of outputs.
constexpr const char* kDenseBatches =
    "def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32], %b: Tensor[(4), float32]) {\n"
    "  %0 = add(nn.bias_add(nn.dense(%x, %w), %b), const(Tensor[(2, 1), float32], [1, 2]));\n"
    "  %1 = add(nn.bias_add(nn.dense(%x, exp(%w)), negative(%b)), const(Tensor[(2, 1), float32], [3, 4]));\n"
    "  %2 = add(nn.bias_add(nn.dense(%x, abs(%w)), const(Tensor[(4), float32], [1, 2, 3, 4])),"
    " const(Tensor[(2, 1), float32], [5, 6]));\n"
    "  %3 = nn.dense(%x, const(Tensor[(1, 3), float32], [1, 2, 3]));\n"
    "  (nn.relu(%0), nn.relu(%1), tanh(nn.relu(%2)), %3)\n"
    "}";

pass::PassContext context_with_to_batch(bool to_batch) {
  pass::PassContext context = typed_context();
  context.config.set("relay.CombineParallelDense.to_batch", Value(to_batch));
  return context;
}

TEST(CombineParallel, TextAndResults) {
  check_pass({"CombineParallelConv2D", "combine_parallel_conv2d", kConvs, {{1, 2, 3, 3}, {2, 2, 1, 1}}, 0});
  check_pass({"CombineParallelBatchMatmul", "combine_parallel_batch_matmul", kBatchMatmuls, {{2, 1, 2}, {2, 2, 2}}, 0});
  check_pass({"CombineParallelDense", "combine_parallel_dense", kDenseBatches, {{2, 3}, {4, 3}, {4}}, 0});
  check_pass({"CombineParallelDense", "combine_parallel_dense_wide", kDenses, {{2, 2}, {2, 2}}, 0},
             context_with_to_batch(false));
}

int count_ops(const IRModule& module, std::string_view op) {
  int count = 0;
  relay::post_order(module->lookup("main"), [&](const Expr& e) {
    const auto* call = e.as<relay::CallNode>();
    count += call != nullptr && call->as_op() != nullptr && call->as_op()->name == op ? 1 : 0;
  });
  return count;
}

TEST(CombineParallel, BranchesOfIfsStayApart) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {\n"
      "  let %a = nn.dense(%x, %w);\n"
      "  let %b = if (less(sum(%x), 1f)) { nn.dense(%x, exp(%w)) } else { nn.dense(%x, abs(%w)) };\n"
      "  (%a, %b)\n}");
  EXPECT_EQ(combine_parallel_dense(before, 2, true), before);
  EXPECT_EQ(combine_parallel_dense(before, 2, false), before);
}

TEST(CombineParallel, EffectsStayWhereTheyAre) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {\n"
      "  let %r = ref(%w);\n"
      "  (nn.dense(%x, ref_read(%r)), ref_write(%r, exp(%w)), nn.dense(%x, ref_read(%r)))\n}");
  EXPECT_EQ(combine_parallel_dense(before, 2, true), before);
  EXPECT_EQ(combine_parallel_dense(before, 2, false), before);
}

TEST(CombineParallel, TheNumberOfBranchesIsAnOption) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {"
      " (nn.dense(%x, %w), nn.dense(%x, exp(%w))) }");
  pass::PassContext context = typed_context();
  EXPECT_EQ(count_ops(run_pass("CombineParallelDense", before, context), "nn.dense"), 2);
  context.config.set("relay.CombineParallelDense.min_num_branches", Value(2));
  EXPECT_EQ(count_ops(run_pass("CombineParallelDense", before, context), "nn.dense"), 0);
  context.config.set("relay.CombineParallelDense.min_num_branches", Value(1));
  EXPECT_EQ(kit::user_error_of([&] { run_pass("CombineParallelDense", before, context); }),
            "relay.CombineParallelDense.min_num_branches must be a number from 2 on, got 1");
}

TEST(CombineParallel, TheFormIsAnOption) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {"
      " (nn.dense(%x, %w), nn.dense(%x, exp(%w)), nn.dense(%x, abs(%w))) }");
  const auto products = [&](const pass::PassContext& context) {
    const IRModule after = run_pass("CombineParallelDense", before, context);
    return std::pair(count_ops(after, "nn.dense"), count_ops(after, "nn.batch_matmul"));
  };
  EXPECT_EQ(products(typed_context()), std::pair(0, 1));
  EXPECT_EQ(products(context_with_to_batch(true)), std::pair(0, 1));
  EXPECT_EQ(products(context_with_to_batch(false)), std::pair(1, 0));
  pass::PassContext context = typed_context();
  context.config.set("relay.CombineParallelDense.to_batch", Value("yes"));
  EXPECT_THAT(kit::user_error_of([&] { run_pass("CombineParallelDense", before, context); }),
              testing::HasSubstr("configuration 'relay.CombineParallelDense.to_batch': expected bool"));
}

// nn.batch_matmul takes three dimensions.
TEST(CombineParallel, DataOfThreeDimensionsMakesAWideDense) {
  const IRModule before = read(
      "def @main(%x: Tensor[(2, 3, 2), float32], %w: Tensor[(4, 2), float32]) {"
      " (nn.dense(%x, %w), nn.dense(%x, exp(%w)), nn.dense(%x, abs(%w))) }");
  const IRModule after = run_pass("CombineParallelDense", before);
  EXPECT_EQ(count_ops(after, "nn.dense"), 1);
  expect_same_results(before, after, {ramp({2, 3, 2}, -1), ramp({4, 2}, 0.5f)}, 0);
}

// What such an op gives is named in it: a shape, an element, a dtype that each branch has of its own.
TEST(CombineParallel, OpsThatNameTheirResultStayBehind) {
  for (const char* followers :
       {"broadcast_to(%0, shape=[2, 2]), broadcast_to(%1, shape=[2, 2]), broadcast_to(%2, shape=[2, 2])",
        "full_like(%0, 1f), full_like(%1, 2f), full_like(%2, 3f)",
        "cast_like(%0, 1i8), cast_like(%1, 1f16), cast_like(%2, 2i8)"}) {
    const IRModule before =
        read(fmt::format("def @main(%x: Tensor[(2, 2), float32], %w: Tensor[(2, 2), float32]) {{\n"
                         "  %0 = nn.dense(%x, %w); %1 = nn.dense(%x, exp(%w)); %2 = nn.dense(%x, abs(%w));\n  ({})\n}}",
                         followers));
    for (const bool to_batch : {true, false}) {
      const IRModule after =
          relay::infer_type(run_pass("CombineParallelDense", before, context_with_to_batch(to_batch)));
      EXPECT_EQ(count_ops(after, to_batch ? "nn.batch_matmul" : "nn.dense"), 1) << followers;
      expect_same_results(before, after, {ramp({2, 2}, -1), ramp({2, 2}, 0.5f)}, 0);
    }
  }
}

// ---- random products

struct Shapes {
  int64_t rows = 0, inputs = 0, outputs = 0;
};

// An op behind a product of that many outputs. `kind`: the same in all branches.
std::string with_follower(kit::Random& random, size_t kind, const std::string& product, const Shapes& shapes) {
  const auto constant = [&](const Shape& shape) {
    std::vector<std::string> data;
    for (int64_t i = 0; i < num_elements(shape); ++i) data.push_back(fmt::format("{}", random.uniform(-2, 2)));
    return fmt::format("const(Tensor[({}), float32], [{}])", fmt::join(shape, ", "), fmt::join(data, ", "));
  };
  switch (kind) {
    case 0:
      return fmt::format("nn.relu({})", product);
    case 1:
      return fmt::format("nn.bias_add({}, {})", product, constant({shapes.outputs}));
    case 2:
      return fmt::format("nn.bias_add({}, {}, axis=0)", product, constant({shapes.rows}));
    case 3:
      return fmt::format("add({}, {})", product, constant({shapes.outputs}));
    case 4:
      return fmt::format("subtract({}, {})", constant({shapes.rows, 1}), product);
    case 5:
      return fmt::format("multiply({}, {})", product, constant({shapes.rows, shapes.outputs}));
    case 6:
      return fmt::format("multiply({}, {})", product, constant({}));
    case 7:
      return fmt::format("maximum(0.25f, {})", product);
    default:
      return fmt::format("clip({}, a_min=-1f, a_max=1.5f)", product);
  }
}

std::string random_dense_program(kit::Random& random, const Shapes& shapes, bool same_outputs) {
  const size_t num_branches = 2 + random.index(4), num_followers = random.index(4);
  std::vector<size_t> kinds;
  for (size_t i = 0; i < num_followers; ++i) kinds.push_back(random.index(9));
  std::vector<std::string> branches;
  for (size_t b = 0; b < num_branches; ++b) {
    Shapes own = shapes;
    if (!same_outputs && random.chance(0.5F)) own.outputs += 1;
    std::string text = fmt::format("nn.dense(%x, strided_slice(%w, begin=[{}, 0], end=[{}, {}]))", b,
                                   static_cast<int64_t>(b) + own.outputs, own.inputs);
    for (const size_t kind : kinds)
      text = with_follower(random, random.chance(0.9F) ? kind : random.index(9), text, own);
    branches.push_back(text);
  }
  return fmt::format("def @main(%x: Tensor[({0}, {1}), float32], %w: Tensor[(12, {1}), float32]) {{\n  ({2})\n}}",
                     shapes.rows, shapes.inputs, fmt::join(branches, ",\n   "));
}

// To the last bit, in both forms.
TEST(CombineParallel, RandomDensesKeepTheirResults) {
  int num_batched = 0, num_wide = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    kit::Random random(seed);
    const auto size = [&] { return static_cast<int64_t>(1 + random.index(4)); };
    const Shapes shapes{size(), size(), size()};
    const IRModule before = read(random_dense_program(random, shapes, random.chance(0.7F)));
    const std::vector<NDArray> args{ramp({shapes.rows, shapes.inputs}, -1), ramp({12, shapes.inputs}, -0.5f)};
    for (const bool to_batch : {true, false}) {
      const IRModule after = relay::infer_type(combine_parallel_dense(before, 2, to_batch));
      expect_same_results(before, after, args, 0);
      if (testing::Test::HasFailure()) FAIL() << relay::print_module(before) << relay::print_module(after);
      (to_batch ? num_batched : num_wide) += count_ops(after, "nn.dense") < count_ops(before, "nn.dense") ? 1 : 0;
    }
  }
  EXPECT_GE(num_batched, 40);
  EXPECT_GE(num_wide, 50);
}

}  // namespace
}  // namespace headrace::passes
