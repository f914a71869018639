// Operators of onnxruntime's domain by hand. python/tests/test_optimised_models.py compares them with onnxruntime.
#include <cmath>

#include "frontend/onnx/tests/import_testing.h"

namespace headrace::onnx {
namespace {

using namespace testing;

// The first output of one node of the domain com.microsoft.
NDArray run_microsoft(std::string_view op, const std::vector<NDArray>& operands, const Attributes& attributes = {}) {
  const std::vector<Operand> inputs(operands.begin(), operands.end());
  const ImportedModel imported = import_graph(node_graph(op, inputs, attributes, 1, "com.microsoft"), 17);
  std::vector<NDArray> args;
  for (const NDArray& operand : operands) {
    if (operand) args.push_back(operand);
  }
  return interp::run_main(imported.module, args).at(0);
}

// The message of the error that importing such a node throws.
std::string microsoft_error(std::string_view op, const std::vector<Operand>& operands,
                            const Attributes& attributes = {}) {
  return import_error(node_graph(op, operands, attributes, 1, "com.microsoft"), 17);
}

NDArray int_zeros(const Shape& shape) {
  return make_array(shape, std::vector<double>(static_cast<size_t>(num_elements(shape))), DataType::int_(32));
}

TEST(ConvertMicrosoft, OperandsAfterAProduct) {
  const NDArray x = f32({1, 1, 1, 2}, {1, -3}), w = f32({1, 1, 1, 1}, {2}), z = f32({1, 1, 1, 2}, {1, 1});
  expect_near(run_microsoft("FusedConv", {x, w, NDArray(), z}, {AttributeSpec("activation", "Relu")}), {1, 1, 1, 2},
              {3, 0}, 0);
  const NDArray a = f32({1, 2}, {1, 2}), b = f32({2, 1}, {-1, -1});
  expect_near(run_microsoft("FusedGemm", {a, b},
                            {AttributeSpec("activation", "LeakyRelu"), AttributeSpec("activation_alpha", 0.5F)}),
              {1, 1}, {-1.5}, 0);
  const NDArray moved = f32({2, 1, 2}, {1, 2, 3, 4});  // as [1, 2, 2]
  expect_near(run_microsoft("FusedMatMul", {moved, b}, {AttributeSpec("transBatchA", 1), AttributeSpec("alpha", 2.0F)}),
              {1, 2, 1}, {-6, -14}, 0);
}

TEST(ConvertMicrosoft, NormalisedSums) {
  const NDArray x = f32({1, 1, 2}, {1, 2}), skip = f32({1, 2}, {0, 3}), gamma = f32({2}, {2, 10});
  expect_near(run_microsoft("SkipLayerNormalization", {x, skip, gamma}), {1, 1, 2}, {-2, 10}, 1e-5);  // sums: 1 and 5
  const double root = std::sqrt(13.0);
  expect_near(run_microsoft("SkipSimplifiedLayerNormalization", {x, skip, gamma}), {1, 1, 2}, {2 / root, 50 / root},
              1e-5);
}

TEST(ConvertMicrosoft, AttentionSeesWhatItsMaskShows) {
  const NDArray q = f32({1, 2, 1}, {0, 0}), v = f32({1, 2, 1}, {3, 5});
  const NDArray lengths = make_array({1}, {1}, DataType::int_(32));
  const AttributeSpec head("num_heads", 1);
  expect_near(run_microsoft("MultiHeadAttention", {q, q, v}, {head}), {1, 2, 1}, {4, 4}, 1e-6);
  expect_near(run_microsoft("MultiHeadAttention", {q, q, v, NDArray(), lengths}, {head}), {1, 2, 1}, {3, 3}, 1e-6);
  expect_near(run_microsoft("MultiHeadAttention", {q, q, v}, {head, AttributeSpec("unidirectional", 1)}), {1, 2, 1},
              {3, 4}, 1e-6);
}

TEST(ConvertMicrosoft, WrongConvolutionsSumsAndTables) {
  EXPECT_THAT(microsoft_error("NhwcConv", {zeros({1, 2}), zeros({2, 2, 1})}), HasSubstr("its input has 2 dimensions"));
  const NDArray two = zeros({2}), x = zeros({1, 3, 2});
  EXPECT_THAT(microsoft_error("SkipLayerNormalization", {x, two, two}),
              HasSubstr("its input has 3 and its skip 1 dimensions, expected 2 or 3 each"));
  EXPECT_THAT(microsoft_error("SkipSimplifiedLayerNormalization", {x, zeros({2, 2}), two}),
              HasSubstr("its skip has the shape Tensor[(2, 2), float32]"));
  const NDArray ids = int_zeros({1, 3}), table = zeros({4, 2});
  const auto embed = [&](const NDArray& own_ids, const NDArray& words, const NDArray& places) {
    return microsoft_error("EmbedLayerNormalization", {own_ids, Operand(), words, places, Operand(), two, two});
  };
  EXPECT_THAT(embed(int_zeros({3}), table, table), HasSubstr("its input_ids have 1 dimensions, expected 2"));
  EXPECT_THAT(embed(ids, two, table), HasSubstr("input 2 has 1 dimensions, expected a table of 2"));
  EXPECT_THAT(embed(ids, table, zeros({2, 2})),
              HasSubstr("its position_embedding Tensor[(2, 2), float32] has no row for each of 3 positions"));
}

TEST(ConvertMicrosoft, WrongOperandsOfAttention) {
  const NDArray x = zeros({2, 3, 4}), w = zeros({4, 12});
  const Operand none;
  const Attributes head = {AttributeSpec("num_heads", 1)};
  const auto error = [&](const std::vector<Operand>& operands) { return microsoft_error("Attention", operands, head); };
  EXPECT_THAT(error({w, w}), HasSubstr("its input has 2 and its weights 2 dimensions, expected 3 and 2"));
  EXPECT_THAT(error({x, w, none, int_zeros({2, 1, 3, 3, 3})}), HasSubstr("its mask has 5 dimensions"));
  EXPECT_THAT(error({x, w, none, int_zeros({2, 5})}), HasSubstr("its mask has 5 columns for 3 positions of keys"));
  EXPECT_THAT(error({x, w, none, none, zeros({2, 2, 3, 4})}), HasSubstr("its past has 4 dimensions, expected 5"));
}

TEST(ConvertMicrosoft, WrongOperandsOfMultiHeadAttention) {
  const NDArray x = zeros({2, 3, 4}), packed = zeros({2, 3, 1, 3, 4}), bias = zeros({12});
  const Operand none;
  const Attributes head = {AttributeSpec("num_heads", 1)};
  const auto error = [&](const std::vector<Operand>& operands) {
    return microsoft_error("MultiHeadAttention", operands, head);
  };
  EXPECT_THAT(error({zeros({2, 3})}), HasSubstr("its query has 2 dimensions, expected 3 or 5"));
  EXPECT_THAT(error({packed, x}), HasSubstr("its query is packed, but it has a key or a value"));
  EXPECT_THAT(error({zeros({2, 3, 2, 3, 4})}), HasSubstr("does not have 1 heads of 3 parts"));
  EXPECT_THAT(error({x, x, x, zeros({8})}), HasSubstr("its bias Tensor[(8), float32] is not one of Q, K and V"));
  EXPECT_THAT(error({x, zeros({2, 3, 1, 2, 4}), none, bias}), HasSubstr("it has a bias, but its key is packed"));
  EXPECT_THAT(error({x, zeros({2, 3}), x}), HasSubstr("its key has 2 dimensions; with a value both have 3 or 4"));
  EXPECT_THAT(error({x, x, x, none, none, none, x, x}), HasSubstr("its past_key has 3 dimensions, expected 4"));
}

TEST(ConvertMicrosoft, WrongRotations) {
  const NDArray x = zeros({1, 2, 4}), at = int_zeros({1}), table = zeros({5, 2});
  const auto error = [](const std::vector<Operand>& operands, const Attributes& attributes = {}) {
    return microsoft_error("RotaryEmbedding", operands, attributes);
  };
  EXPECT_THAT(error({zeros({1, 4}), at, table, table}), HasSubstr("its data has 2 dimensions, expected 3 or 4"));
  EXPECT_THAT(error({x, at, zeros({2}), table}), HasSubstr("its cos_cache has 1 dimensions, expected 2"));
  EXPECT_THAT(error({x, at, table, zeros({5, 1})}),
              HasSubstr("its sin_cache Tensor[(5, 1), float32] is not a table of 2 columns"));
  EXPECT_THAT(error({x, int_zeros({1, 3}), table, table}), HasSubstr("do not fit 2 positions"));
  EXPECT_THAT(error({x, at, zeros({5, 3}), zeros({5, 3})}), HasSubstr("4 numbers a position do not make heads of 6"));
  EXPECT_THAT(error({x, at, table, table}, {AttributeSpec("rotary_embedding_dim", 3)}),
              HasSubstr("attribute 'rotary_embedding_dim' is 3 and 'num_heads' 0"));
}

TEST(ConvertMicrosoft, RotationStartsAtAPosition) {
  const NDArray x = f32({1, 1, 2}, {1, 2}), at = i64({1}, {1}), cos = f32({2, 1}, {1, 0}), sin = f32({2, 1}, {0, 1});
  expect_near(run_microsoft("RotaryEmbedding", {x, at, cos, sin}), {1, 1, 2}, {-2, 1}, 0);
}

}  // namespace
}  // namespace headrace::onnx
