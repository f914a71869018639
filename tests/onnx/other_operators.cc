#include "other_operators.h"

#include "frontend/onnx/import.h"
#include "frontend/onnx/file/read_model.h"
#include "kit/onnx_writer.h"

namespace headrace::onnx_test {

namespace {

using onnx::ElementType;

struct Operand {
  ElementType type;
  std::vector<kit::DimSpec> dims;
};

struct OneNode {
  std::string_view op;
  std::vector<Operand> operands;
  std::vector<kit::AttributeSpec> attributes = {};
};

std::vector<OneNode> nodes() {
  const std::vector<int64_t> pair{2, 2};
  const Operand matrix{ElementType::kFloat, {int64_t{2}, int64_t{3}}}, vector{ElementType::kFloat, {int64_t{3}}};
  const Operand image{ElementType::kFloat, {int64_t{1}, int64_t{2}, int64_t{4}, int64_t{4}}};
  const Operand regions{ElementType::kFloat, {int64_t{3}, int64_t{5}}};
  return {
      {"GlobalLpPool", {image}},
      {"LayerNormalization", {matrix, vector, vector}},
      {"MaxRoiPool", {image, regions}, {{"pooled_shape", pair}}},
      {"Multinomial", {matrix}},
      {"Not", {{ElementType::kBool, {int64_t{2}}}}},
      {"RandomNormal", {}, {{"shape", pair}}},
      {"RandomNormalLike", {matrix}},
      {"RandomUniform", {}, {{"shape", pair}}},
      {"RandomUniformLike", {matrix}},
  };
}

CaseResult imported(const OneNode& node) {
  kit::GraphWriter graph;
  std::vector<std::string> inputs;
  for (const Operand& operand : node.operands)
    inputs.push_back(graph.input(fmt::format("x{}", inputs.size()), operand.type, operand.dims));
  graph.output(graph.node(node.op, inputs, node.attributes, "y"), ElementType::kUndefined);
  const std::string bytes = kit::encode_model(std::move(graph).finish());
  const onnx::Model model = onnx::read_model(std::as_bytes(std::span(bytes)), std::string(node.op));
  CaseResult result;
  result.op = node.op;
  result.relay_ops = ops_of(onnx::import_model(model, {}).module);
  return result;
}

}  // namespace

std::vector<CaseResult> other_operators() {
  std::vector<CaseResult> results;
  for (const OneNode& node : nodes()) results.push_back(imported(node));
  return results;
}

}  // namespace headrace::onnx_test
