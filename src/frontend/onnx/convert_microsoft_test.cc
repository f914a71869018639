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

TEST(ConvertMicrosoft, WhatFollowsAProduct) {
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
  expect_near(run_microsoft("SkipLayerNormalization", {x, skip, gamma}), {1, 1, 2}, {-2, 10}, 1e-5);  // of 1 and 5
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

TEST(ConvertMicrosoft, RotationStartsAtAPosition) {
  const NDArray x = f32({1, 1, 2}, {1, 2}), at = i64({1}, {1}), cos = f32({2, 1}, {1, 0}), sin = f32({2, 1}, {0, 1});
  expect_near(run_microsoft("RotaryEmbedding", {x, at, cos, sin}), {1, 1, 2}, {-2, 1}, 0);
}

}  // namespace
}  // namespace headrace::onnx
