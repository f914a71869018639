#include "kit/onnx_writer.h"

#include <fmt/format.h>

#include <protozero/pbf_writer.hpp>

namespace headrace::kit {

using onnx::AttributeKind;
using onnx::ElementType;
using protozero::pbf_writer;

namespace {

constexpr uint32_t kNode = 1;
constexpr uint32_t kGraphName = 2;
constexpr uint32_t kInitializer = 5;
constexpr uint32_t kInput = 11;
constexpr uint32_t kOutput = 12;

void write_tensor(pbf_writer& tensor, std::string_view name, ElementType type, const std::vector<int64_t>& dims,
                  std::span<const std::byte> bytes) {
  for (int64_t dim : dims) tensor.add_int64(1, dim);
  tensor.add_int32(2, static_cast<int32_t>(type));
  tensor.add_string(8, name.data(), name.size());
  tensor.add_bytes(9, reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

std::string encode_dim(const DimSpec& dim) {
  std::string bytes;
  pbf_writer writer(bytes);
  if (const auto* value = std::get_if<int64_t>(&dim)) {
    writer.add_int64(1, *value);
  } else if (!std::get<std::string>(dim).empty()) {
    writer.add_string(2, std::get<std::string>(dim));
  }
  return bytes;
}

void write_value_info(std::string& graph, uint32_t field, std::string_view name, ElementType type,
                      const std::vector<DimSpec>& dims, bool has_shape) {
  pbf_writer writer(graph);
  pbf_writer info(writer, field);
  info.add_string(1, name.data(), name.size());
  pbf_writer value_type(info, 2);
  pbf_writer tensor_type(value_type, 1);
  tensor_type.add_int32(1, static_cast<int32_t>(type));
  if (!has_shape) return;
  // Added whole: a nested writer would leave an empty message out, and a scalar's shape is one.
  std::string shape;
  for (const DimSpec& dim : dims) pbf_writer(shape).add_message(1, encode_dim(dim));
  tensor_type.add_message(2, shape);
}

// One overload per alternative of AttributeSpec::Value; each writes the value and returns its kind.
struct ValueWriter {
  pbf_writer& attribute;

  AttributeKind operator()(int64_t value) const {
    attribute.add_int64(3, value);
    return AttributeKind::kInt;
  }
  AttributeKind operator()(float value) const {
    attribute.add_float(2, value);
    return AttributeKind::kFloat;
  }
  AttributeKind operator()(const std::string& value) const {
    attribute.add_bytes(4, value);
    return AttributeKind::kString;
  }
  AttributeKind operator()(const std::vector<int64_t>& values) const {
    for (int64_t value : values) attribute.add_int64(8, value);
    return AttributeKind::kInts;
  }
  AttributeKind operator()(const std::vector<float>& values) const {
    for (float value : values) attribute.add_float(7, value);
    return AttributeKind::kFloats;
  }
  AttributeKind operator()(const std::vector<std::string>& values) const {
    for (const std::string& value : values) attribute.add_bytes(9, value);
    return AttributeKind::kStrings;
  }
  AttributeKind operator()(const EncodedTensor& tensor) const {
    attribute.add_message(5, tensor.bytes);
    return AttributeKind::kTensor;
  }
  AttributeKind operator()(const EncodedGraph& graph) const {
    attribute.add_message(6, graph.bytes);
    return AttributeKind::kGraph;
  }
};

template <typename T>
std::span<const std::byte> as_bytes(std::span<const T> values) {
  return std::as_bytes(values);
}

}  // namespace

EncodedTensor encode_tensor(std::string_view name, ElementType type, const std::vector<int64_t>& dims,
                            std::span<const std::byte> bytes) {
  EncodedTensor result;
  pbf_writer tensor(result.bytes);
  write_tensor(tensor, name, type, dims, bytes);
  return result;
}

GraphWriter::GraphWriter(std::string_view name) { pbf_writer(bytes_).add_string(kGraphName, name.data(), name.size()); }

std::string GraphWriter::input(std::string_view name, ElementType type, const std::vector<DimSpec>& dims) {
  write_value_info(bytes_, kInput, name, type, dims, true);
  return std::string(name);
}

void GraphWriter::output(std::string_view name, ElementType type, const std::vector<DimSpec>& dims) {
  write_value_info(bytes_, kOutput, name, type, dims, !dims.empty());
}

std::string GraphWriter::initializer(std::string_view name, ElementType type, const std::vector<int64_t>& dims,
                                     std::span<const std::byte> bytes) {
  pbf_writer writer(bytes_);
  pbf_writer tensor(writer, kInitializer);
  write_tensor(tensor, name, type, dims, bytes);
  return std::string(name);
}

std::string GraphWriter::initializer(std::string_view name, const std::vector<int64_t>& dims,
                                     std::span<const float> values) {
  return initializer(name, ElementType::kFloat, dims, as_bytes(values));
}

std::string GraphWriter::initializer(std::string_view name, const std::vector<int64_t>& dims,
                                     std::span<const int64_t> values) {
  return initializer(name, ElementType::kInt64, dims, as_bytes(values));
}

std::string GraphWriter::node(std::string_view op_type, const std::vector<std::string>& inputs,
                              const std::vector<AttributeSpec>& attributes, std::string output) {
  if (output.empty()) output = fmt::format("{}_{}", op_type, next_node_);
  node_with_outputs(op_type, inputs, {output}, attributes);
  return output;
}

void GraphWriter::node_with_outputs(std::string_view op_type, const std::vector<std::string>& inputs,
                                    const std::vector<std::string>& outputs,
                                    const std::vector<AttributeSpec>& attributes, std::string_view domain) {
  pbf_writer writer(bytes_);
  pbf_writer node(writer, kNode);
  for (const std::string& input : inputs) node.add_string(1, input);
  for (const std::string& output : outputs) node.add_string(2, output);
  node.add_string(3, fmt::format("{}_node_{}", op_type, next_node_++));
  node.add_string(4, op_type.data(), op_type.size());
  for (const AttributeSpec& spec : attributes) {
    pbf_writer attribute(node, 5);
    attribute.add_string(1, spec.name);
    AttributeKind kind = std::visit(ValueWriter{attribute}, spec.value);
    attribute.add_int32(20, static_cast<int32_t>(kind));
  }
  if (!domain.empty()) node.add_string(7, domain.data(), domain.size());
}

void GraphWriter::raw_field(uint32_t number, std::string_view message) {
  pbf_writer(bytes_).add_message(number, message.data(), message.size());
}

std::string encode_model(const EncodedGraph& graph, const std::vector<OpsetSpec>& opsets, int64_t ir_version) {
  std::string bytes;
  bytes.reserve(graph.bytes.size() + 256);
  pbf_writer model(bytes);
  model.add_int64(1, ir_version);
  model.add_string(2, "headrace.kit");
  model.add_message(7, graph.bytes);
  for (const OpsetSpec& opset : opsets) {
    pbf_writer import(model, 8);
    if (!opset.domain.empty()) import.add_string(1, opset.domain);
    import.add_int64(2, opset.version);
  }
  return bytes;
}

}  // namespace headrace::kit
