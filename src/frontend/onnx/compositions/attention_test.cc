// Attention and RotaryEmbedding where the cases of the onnx package do not look: by hand, and wrong models.
#include <cmath>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;
using ::testing::ElementsAre;

// Two positions of two numbers, one head.
NDArray pair_of_rows() { return f32({1, 1, 2, 2}, {1, 0, 0, 1}); }

TEST(ConvertAttention, ByHand) {
  const NDArray v = f32({1, 1, 2, 1}, {1, 3});
  const double e = std::exp(1.0), near = e / (e + 1);  // the products are 1 and 0
  expect_near(run_node("Attention", 23, {pair_of_rows(), pair_of_rows(), v}, {AttributeSpec("scale", 1.0F)}).at(0),
              {1, 1, 2, 1}, {near + 3 * (1 - near), 1 - near + 3 * near}, 1e-6);
  const auto causal = run_node(
      "Attention", 23, {pair_of_rows(), pair_of_rows(), v},
      {AttributeSpec("scale", 1.0F), AttributeSpec("is_causal", 1), AttributeSpec("qk_matmul_output_mode", 3)}, 4);
  expect_near(causal.at(0), {1, 1, 2, 1}, {1, 1 - near + 3 * near}, 1e-6);
  expect_near(causal.at(3), {1, 1, 2, 2}, {1, 0, 1 - near, near}, 1e-6);
}

TEST(ConvertAttention, ARowThatSeesNothingIsZero) {
  const NDArray v = f32({1, 1, 2, 1}, {1, 3}), mask = boolean({2, 2}, {0, 0, 1, 0});
  const auto out = run_node("Attention", 23, {pair_of_rows(), pair_of_rows(), v, mask},
                            {AttributeSpec("qk_matmul_output_mode", 3)}, 4);
  expect_near(out.at(0), {1, 1, 2, 1}, {0, 1}, 0);
  expect_near(out.at(3), {1, 1, 2, 2}, {0, 0, 1, 0}, 0);
}

// Returns which positions each query of two sees of four.
std::vector<double> seen_by_two(int64_t opset, const Attributes& attributes, const Operand& sizes = {}) {
  const NDArray q = f32({1, 1, 2, 1}, {0, 0}), k = f32({1, 1, 4, 1}, {1, 1, 1, 1});
  Attributes all = attributes;
  all.push_back(AttributeSpec("qk_matmul_output_mode", 3));
  const NDArray weights = run_node("Attention", opset, {q, k, k, Operand(), Operand(), Operand(), sizes}, all, 4).at(3);
  std::vector<double> seen;
  for (const double weight : doubles_of(weights)) seen.push_back(weight > 0 ? 1 : 0);
  return seen;
}

TEST(ConvertAttention, CachesShowTheirFirstPositions) {
  const AttributeSpec causal("is_causal", 1);
  EXPECT_THAT(seen_by_two(24, {}, i64({1}, {3})), ElementsAre(1, 1, 1, 0, 1, 1, 1, 0));
  EXPECT_THAT(seen_by_two(24, {causal}, i64({1}, {3})), ElementsAre(1, 1, 0, 0, 1, 1, 1, 0));
  // The first query comes before the cache, and sees nothing.
  EXPECT_THAT(seen_by_two(24, {causal}, i64({1}, {1})), ElementsAre(0, 0, 0, 0, 1, 0, 0, 0));
  const NDArray x = pair_of_rows();
  EXPECT_THAT(node_error("Attention", 24, {x, x, x, Operand(), Operand(), Operand(), i64({2}, {1, 1})}),
              HasSubstr("its nonpad_kv_seqlen are not 1, one for each sample"));
  EXPECT_THAT(node_error("Attention", 24, {x, x, x, Operand(), x, x, i64({1}, {1})}),
              HasSubstr("it has both past_key and nonpad_kv_seqlen"));
}

TEST(ConvertAttention, WindowsHideTheRest) {
  const auto window = [](int64_t before, int64_t after) {
    return Attributes{AttributeSpec("left_window_size", before), AttributeSpec("right_window_size", after)};
  };
  EXPECT_THAT(seen_by_two(25, window(-1, 1)), ElementsAre(1, 1, 0, 0, 1, 1, 1, 0));
  EXPECT_THAT(seen_by_two(25, window(0, -1)), ElementsAre(1, 1, 1, 1, 0, 1, 1, 1));
  EXPECT_THAT(seen_by_two(25, window(1, 0), i64({1}, {4})), ElementsAre(0, 1, 1, 0, 0, 0, 1, 1));
  Attributes both = window(-1, 2);
  both.push_back(AttributeSpec("is_causal", 1));
  EXPECT_THAT(seen_by_two(25, both), ElementsAre(1, 0, 0, 0, 1, 1, 0, 0));
  const NDArray x = pair_of_rows();
  EXPECT_THAT(node_error("Attention", 25, {x, x, x}, window(-2, 0)), HasSubstr("attribute 'left_window_size' is -2"));
  EXPECT_THAT(node_error("Attention", 24, {x, x, x}, window(1, 1)), HasSubstr("left_window_size"));
}

TEST(ConvertAttention, TheProductsAreThoseBeforeTheCap) {
  const NDArray v = f32({1, 1, 2, 1}, {1, 3});
  const auto shown = [&](int64_t mode) {
    return run_node("Attention", 23, {pair_of_rows(), pair_of_rows(), v},
                    {AttributeSpec("scale", 4.0F), AttributeSpec("softcap", 2.0F),
                     AttributeSpec("qk_matmul_output_mode", mode)},
                    4)
        .at(3);
  };
  expect_near(shown(0), {1, 1, 2, 2}, {4, 0, 0, 4}, 1e-6);
  const double capped = 2 * std::tanh(2.0);
  expect_near(shown(1), {1, 1, 2, 2}, {capped, 0, 0, capped}, 1e-6);
}

TEST(ConvertAttention, WrongModelsAreTold) {
  const NDArray x = pair_of_rows(), flat = f32({1, 2, 3}, {0, 0, 0, 0, 0, 0});
  const auto error = [](const std::vector<Operand>& operands, const Attributes& attributes = {}) {
    return node_error("Attention", 23, operands, attributes);
  };
  EXPECT_THAT(error({x, x, flat}), HasSubstr("Q, K and V have 4, 4 and 3 dimensions, expected 3 or 4 each"));
  EXPECT_THAT(error({flat, flat, flat}, {AttributeSpec("q_num_heads", 2), AttributeSpec("kv_num_heads", 1)}),
              HasSubstr("attribute 'q_num_heads' is 2 for 3 numbers a position"));
  EXPECT_THAT(error({flat, flat, flat}), HasSubstr("'q_num_heads' is missing"));
  EXPECT_THAT(error({x, x, x, Operand(), x}), HasSubstr("one of past_key and past_value is missing"));
  EXPECT_THAT(error({x, x, x}, {AttributeSpec("qk_matmul_output_mode", 4)}), HasSubstr("'qk_matmul_output_mode' is 4"));
  EXPECT_THAT(error({x, x, x}, {AttributeSpec("softmax_precision", 7)}),
              HasSubstr("names int64, expected a floating-point type"));
  EXPECT_THAT(error({x, x, x}, {AttributeSpec("scale", -1.0F)}), HasSubstr("attribute 'scale' is -1"));
  EXPECT_THAT(error({x, x, x, f32({}, {0})}), HasSubstr("its attn_mask is a scalar"));
  const NDArray two = f32({1, 2, 1, 2}, {0, 0, 0, 0}), three = f32({1, 3, 1, 2}, {0, 0, 0, 0, 0, 0});
  EXPECT_THAT(error({three, two, two}), HasSubstr("3 heads of queries share 2 of keys or values"));
}

TEST(ConvertRotaryEmbedding, TurnsPairs) {
  const NDArray x = f32({1, 1, 1, 4}, {1, 2, 3, 4}), cos = f32({1, 1, 2}, {0, 0}), sin = f32({1, 1, 2}, {1, 1});
  expect_near(run_node("RotaryEmbedding", 23, {x, cos, sin}).at(0), {1, 1, 1, 4}, {-3, -4, 1, 2}, 0);
  expect_near(run_node("RotaryEmbedding", 23, {x, cos, sin}, {AttributeSpec("interleaved", 1)}).at(0), {1, 1, 1, 4},
              {-2, 1, -4, 3}, 0);
}

TEST(ConvertRotaryEmbedding, WrongModelsAreTold) {
  const NDArray x = f32({1, 1, 1, 4}, {1, 2, 3, 4}), table = f32({1, 1, 2}, {0, 0});
  const auto error = [](const std::vector<Operand>& operands, const Attributes& attributes = {}) {
    return node_error("RotaryEmbedding", 23, operands, attributes);
  };
  EXPECT_THAT(error({f32({1, 4}, {1, 2, 3, 4}), table, table}), HasSubstr("its data has 2 dimensions"));
  EXPECT_THAT(error({f32({1, 1, 4}, {1, 2, 3, 4}), table, table}), HasSubstr("'num_heads' is 0 for 4 numbers"));
  EXPECT_THAT(error({x, table, table}, {AttributeSpec("rotary_embedding_dim", 3)}),
              HasSubstr("3 of 4 numbers of a head are rotated in pairs"));
  EXPECT_THAT(error({x, f32({1, 1, 3}, {0, 0, 0}), table}),
              HasSubstr("its cos_cache is not a table of 3 dimensions with 2 columns"));
  EXPECT_THAT(
      error({x, f32({5, 2}, std::vector<double>(10, 0)), f32({5, 2}, std::vector<double>(10, 0)), i64({2}, {0, 0})}),
      HasSubstr("its position_ids are not 1 times 1"));
}

}  // namespace
}  // namespace headrace::onnx
