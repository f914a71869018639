// CombineParallelConv2D, CombineParallelDense, CombineParallelBatchMatmul.
#include "passes/nn/combine_parallel.h"

#include <gmock/gmock.h>

#include "kit/errors.h"
#include "kit/property.h"
#include "kit/random.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {
namespace {

constexpr DenseForm kDenseForms[] = {DenseForm::wide, DenseForm::batch, DenseForm::batch_of_copies};

pass::PassContext context_with_to_batch(bool to_batch) {
  pass::PassContext context = typed_context();
  context.config.set("relay.CombineParallelDense.to_batch", Value(to_batch));
  return context;
}

TEST(CombineParallel, BranchesOfIfsStayApart) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {\n"
      "  let %a = nn.dense(%x, %w);\n"
      "  let %b = if (less(sum(%x), 1f)) { nn.dense(%x, exp(%w)) } else { nn.dense(%x, abs(%w)) };\n"
      "  (%a, %b)\n}");
  for (const DenseForm form : kDenseForms) EXPECT_EQ(combine_parallel_dense(before, 2, form), before);
}

TEST(CombineParallel, EffectsStayWhereTheyAre) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {\n"
      "  let %r = ref(%w);\n"
      "  (nn.dense(%x, ref_read(%r)), ref_write(%r, exp(%w)), nn.dense(%x, ref_read(%r)))\n}");
  for (const DenseForm form : kDenseForms) EXPECT_EQ(combine_parallel_dense(before, 2, form), before);
}

TEST(CombineParallel, TheNumberOfBranchesIsAnOption) {
  const IRModule before = read(
      "def @main(%x: Tensor[(1, 2), float32], %w: Tensor[(2, 2), float32]) {"
      " (nn.dense(%x, %w), nn.dense(%x, exp(%w))) }");
  pass::PassContext context = typed_context();
  EXPECT_EQ(count_calls(run_pass("CombineParallelDense", before, context), "nn.dense"), 2);
  context.config.set("relay.CombineParallelDense.min_num_branches", Value(2));
  EXPECT_EQ(count_calls(run_pass("CombineParallelDense", before, context), "nn.dense"), 0);
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
    return std::pair(count_calls(after, "nn.dense"), count_calls(after, "nn.batch_matmul"));
  };
  EXPECT_EQ(products(typed_context()), std::pair(0, 1));
  EXPECT_EQ(products(context_with_to_batch(true)), std::pair(0, 1));
  EXPECT_EQ(products(context_with_to_batch(false)), std::pair(1, 0));
  pass::PassContext context = typed_context();
  context.config.set("relay.CombineParallelDense.to_batch", Value("yes"));
  EXPECT_THAT(kit::user_error_of([&] { run_pass("CombineParallelDense", before, context); }),
              testing::HasSubstr("configuration 'relay.CombineParallelDense.to_batch': expected bool"));
}

// A wider product takes operands with more axes than it has, one number for a branch, and expand_dims.
TEST(CombineParallel, OpsAfterAWideDenseMayAddAxes) {
  for (const char* follower : {"add(%{}, const(Tensor[(2, 3, 1), float32], [1, 2, 3, 4, 5, 6]))",
                               "subtract(const(Tensor[(2, 1, 4), float32], [1, 2, 3, 4, 5, 6, 7, 8]), %{})",
                               "multiply(const(Tensor[(1), float32], [3]), expand_dims(%{}, axis=0, num_newaxis=2))",
                               "expand_dims(nn.relu(expand_dims(%{}, axis=-1)), axis=1)"}) {
    const auto of = [&](int product) { return fmt::format(fmt::runtime(follower), product); };
    const IRModule before =
        read(fmt::format("def @main(%x: Tensor[(3, 2), float32], %w: Tensor[(4, 2), float32]) {{\n"
                         "  %0 = nn.dense(%x, %w); %1 = nn.dense(%x, exp(%w));\n  (exp({}), exp({}))\n}}",
                         of(0), of(1)));
    const IRModule after = relay::infer_type(combine_parallel_dense(before, 2, DenseForm::wide));
    EXPECT_EQ(count_calls(after, "nn.dense"), 1) << follower;
    EXPECT_EQ(count_calls(after, "exp"), 2) << relay::print_module(after);  // one for the weight, one for all columns
    expect_same_results(before, after, {ramp({3, 2}, -1), ramp({4, 2}, 0.5f)}, 0);
  }
}

// nn.batch_matmul takes three dimensions.
TEST(CombineParallel, DataOfThreeDimensionsMakesAWideDense) {
  const IRModule before = read(
      "def @main(%x: Tensor[(2, 3, 2), float32], %w: Tensor[(4, 2), float32]) {"
      " (nn.dense(%x, %w), nn.dense(%x, exp(%w)), nn.dense(%x, abs(%w))) }");
  const IRModule after = run_pass("CombineParallelDense", before);
  EXPECT_EQ(count_calls(after, "nn.dense"), 1);
  expect_same_results(before, after, {ramp({2, 3, 2}, -1), ramp({4, 2}, 0.5f)}, 0);
}

// Such ops name their result in attributes: a shape, an element or a dtype that each branch has for itself.
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
      EXPECT_EQ(count_calls(after, to_batch ? "nn.batch_matmul" : "nn.dense"), 1) << followers;
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
    case 8:
      return fmt::format("add({}, {})", product, constant({1}));
    default:
      return fmt::format("clip({}, a_min=-1f, a_max=1.5f)", product);
  }
}

std::string random_dense_program(kit::Random& random, const Shapes& shapes, bool same_outputs) {
  const size_t num_branches = 2 + random.index(4), num_followers = random.index(4);
  std::vector<size_t> kinds;
  for (size_t i = 0; i < num_followers; ++i) kinds.push_back(random.index(10));
  std::vector<std::string> branches;
  for (size_t b = 0; b < num_branches; ++b) {
    Shapes own = shapes;
    if (!same_outputs && random.chance(0.5F)) own.outputs += 1;
    std::string text = fmt::format("nn.dense(%x, strided_slice(%w, begin=[{}, 0], end=[{}, {}]))", b,
                                   static_cast<int64_t>(b) + own.outputs, own.inputs);
    for (const size_t kind : kinds)
      text = with_follower(random, random.chance(0.9F) ? kind : random.index(10), text, own);
    branches.push_back(text);
  }
  return fmt::format("def @main(%x: Tensor[({0}, {1}), float32], %w: Tensor[(12, {1}), float32]) {{\n  ({2})\n}}",
                     shapes.rows, shapes.inputs, fmt::join(branches, ",\n   "));
}

struct RandomDenses {
  Shapes shapes;
  std::string program;
};

// To the last bit, in all forms.
TEST(CombineParallel, RandomDensesKeepTheirResults) {
  int num_batched = 0, num_wide = 0;
  kit::Property<RandomDenses> property;
  property.runs_ci = 60;
  property.runs_full = 20000;
  property.generate = [](kit::Random& random) {
    const auto size = [&] { return static_cast<int64_t>(1 + random.index(4)); };
    const Shapes shapes{size(), size(), size()};
    return RandomDenses{shapes, random_dense_program(random, shapes, random.chance(0.7F))};
  };
  property.show = [](const RandomDenses& denses) { return denses.program; };
  property.check = [&](const RandomDenses& denses) -> std::optional<std::string> {
    const IRModule before = read(denses.program);
    const Shapes& shapes = denses.shapes;
    const std::vector<NDArray> args{ramp({shapes.rows, shapes.inputs}, -1), ramp({12, shapes.inputs}, -0.5f)};
    for (const DenseForm form : kDenseForms) {
      const IRModule after = relay::infer_type(combine_parallel_dense(before, 2, form));
      if (auto difference = difference_of_results(before, after, args, 0))
        return *difference + "\n" + relay::print_module(after);
      (form == DenseForm::wide ? num_wide : num_batched) +=
          count_calls(after, "nn.dense") < count_calls(before, "nn.dense") ? 1 : 0;
    }
    return std::nullopt;
  };
  EXPECT_TRUE(kit::holds(property));
  if (kit::options().seed || kit::options().size == kit::TestSize::kList) return;
  EXPECT_GE(num_batched, kit::options().size == kit::TestSize::kFew ? 5 : 70);
  EXPECT_GE(num_wide, kit::options().size == kit::TestSize::kFew ? 3 : 40);
}

}  // namespace
}  // namespace headrace::passes
