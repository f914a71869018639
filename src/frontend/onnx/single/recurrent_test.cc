// LSTM, GRU and RNN; what is computed of them, and what is refused. ONNX's own cases and python/tests compare whole
// layers with other runtimes.
#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using Strings = std::vector<std::string>;

// An RNN of one unit whose values are sums: the activation is affine, x -> x.
const Attributes kSums{AttributeSpec("hidden_size", 1), AttributeSpec("activations", Strings{"Affine"}),
                       AttributeSpec("activation_alpha", std::vector<float>{1}),
                       AttributeSpec("activation_beta", std::vector<float>{0})};

Attributes with(Attributes attributes, AttributeSpec more) {
  attributes.push_back(std::move(more));
  return attributes;
}

const NDArray kOne = f32({1, 1, 1}, {1});

TEST(ConvertRecurrent, AddsUpTheSteps) {
  const NDArray x = f32({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  const auto sums = run_node("RNN", 14, {x, kOne, kOne}, kSums, 2);
  expect_near(sums[0], {3, 1, 2, 1}, {1, 10, 3, 30, 6, 60}, 0);
  expect_near(sums[1], {1, 2, 1}, {6, 60}, 0);
  const auto back = run_node("RNN", 7, {x, kOne, kOne, f32({1, 2}, {0.25, 0.25})},
                             with(kSums, AttributeSpec("direction", "reverse")), 2);
  expect_near(back[0], {3, 1, 2, 1}, {7.5, 61.5, 6, 51, 3.5, 30.5}, 0);
}

TEST(ConvertRecurrent, StopsAtTheEndOfASequence) {
  const NDArray x = f32({3, 2, 1}, {1, 10, 2, 20, 3, 30}), lengths = make_array({2}, {1, 2}, DataType::int_(32));
  const auto sums = run_node("RNN", 14, {x, kOne, kOne, {}, lengths, f32({1, 2, 1}, {5, 6})}, kSums, 2);
  expect_near(sums[0], {3, 1, 2, 1}, {6, 16, 0, 36, 0, 0}, 0);
  expect_near(sums[1], {1, 2, 1}, {6, 36}, 0);
}

TEST(ConvertRecurrent, TakesBatchesFirst) {
  const NDArray x = f32({2, 3, 1}, {1, 2, 3, 10, 20, 30});
  const auto sums =
      run_node("RNN", 14, {x, kOne, kOne, {}, {}, f32({2, 1, 1}, {1, 2})}, with(kSums, AttributeSpec("layout", 1)), 2);
  expect_near(sums[0], {2, 3, 1, 1}, {2, 4, 7, 12, 32, 62}, 0);
  expect_near(sums[1], {2, 1, 1}, {7, 62}, 0);
}

TEST(ConvertRecurrent, GivesTheLastCells) {
  const NDArray x = f32({2, 1, 1}, {0, 0}), w = f32({1, 4, 1}, {0, 0, 0, 0}), c = f32({1, 1, 1}, {8});
  const auto all = run_node("LSTM", 14, {x, w, w, {}, {}, {}, c, {}}, {AttributeSpec("hidden_size", 1)}, 3);
  ASSERT_EQ(all.size(), 3u);
  // Each gate is 1/2 and each new value 0: the cell halves twice.
  expect_near(all[2], {1, 1, 1}, {2}, 0);
  expect_near(all[1], {1, 1, 1}, {0.5 * std::tanh(2.0)}, 1e-6);
}

TEST(ConvertRecurrent, SomeAreRefused) {
  const NDArray x = f32({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  const auto error = [&](const std::vector<Operand>& operands, const Attributes& attributes) {
    return node_error("RNN", 14, operands, attributes, 2);
  };
  const Attributes none;
  EXPECT_THAT(error({x, kOne, kOne}, with(none, AttributeSpec("hidden_size", 2))),
              HasSubstr("attribute 'hidden_size' is 2, but its input R is for 1"));
  EXPECT_THAT(error({x, kOne, kOne}, with(none, AttributeSpec("activations", Strings{"Sine"}))),
              HasSubstr("attribute 'activations' names 'Sine', which is not an activation"));
  EXPECT_THAT(error({x, kOne, kOne}, with(none, AttributeSpec("activations", Strings{"ScaledTanh"}))),
              HasSubstr("the activation scaled_tanh needs a number in activation_alpha"));
  EXPECT_THAT(error({x, kOne, kOne}, with(none, AttributeSpec("activations", 1))), HasSubstr("activations"));
  EXPECT_THAT(error({x, kOne, kOne}, with(none, AttributeSpec("layout", 2))), HasSubstr("'layout' is 2"));
  EXPECT_THAT(error({x, kOne, kOne}, with(none, AttributeSpec("direction", "up"))), HasSubstr("direction"));
  EXPECT_THAT(error({x, kOne, kOne}, with(none, AttributeSpec("clip", 0.0F))), HasSubstr("clip is 0, which leaves"));
  EXPECT_THAT(error({x, kOne, f32({1, 1}, {1})}, none), HasSubstr("its inputs X and R have 3 and 2 dimensions"));
  EXPECT_THAT(error({x, f32({1, 1, 2}, {1, 1}), kOne}, none), HasSubstr("weight must be Tensor[(1, 1, 1), float32]"));
  EXPECT_THAT(error({i64({1, 1, 1}, {1}), kOne, kOne}, none), HasSubstr("must be floating point"));
  const NDArray wide = NDArray::zeros({1, (1 << 22) + 1, 1}, DataType::float_(32));
  EXPECT_THAT(error({wide, kOne, kOne}, none), HasSubstr("it would need a table of 4194305 entries"));
}

}  // namespace
}  // namespace headrace::onnx
