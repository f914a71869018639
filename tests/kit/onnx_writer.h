// Writes ONNX models, for tests of the importer and for model generators.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "frontend/onnx/file/model.h"

namespace headrace::kit {

// An encoded message, to be placed inside another.
struct EncodedTensor {
  std::string bytes;
};
struct EncodedGraph {
  std::string bytes;
};

struct AttributeSpec {
  using Value = std::variant<int64_t, float, std::string, std::vector<int64_t>, std::vector<float>,
                             std::vector<std::string>, EncodedTensor, EncodedGraph>;
  std::string name;
  Value value;

  AttributeSpec(std::string name, std::integral auto value) : name(std::move(name)), value(int64_t{value}) {}
  AttributeSpec(std::string name, float value) : name(std::move(name)), value(value) {}
  AttributeSpec(std::string name, const char* value) : name(std::move(name)), value(std::string(value)) {}
  AttributeSpec(std::string name, Value value) : name(std::move(name)), value(std::move(value)) {}
};

// A dimension: a number, a name, or (empty name) unknown.
using DimSpec = std::variant<int64_t, std::string>;

// Returns the encoded TensorProto with its elements in raw_data.
EncodedTensor encode_tensor(std::string_view name, onnx::ElementType type, const std::vector<int64_t>& dims,
                            std::span<const std::byte> bytes);

// One graph. Names of values are the caller's; node() makes one up for its output when none is given.
class GraphWriter {
 public:
  explicit GraphWriter(std::string_view name = "graph");

  std::string input(std::string_view name, onnx::ElementType type, const std::vector<DimSpec>& dims);
  // Adds an output. Without dims the shape is left open; kUndefined leaves the type open.
  void output(std::string_view name, onnx::ElementType type, const std::vector<DimSpec>& dims = {});
  std::string initializer(std::string_view name, onnx::ElementType type, const std::vector<int64_t>& dims,
                          std::span<const std::byte> bytes);
  std::string initializer(std::string_view name, const std::vector<int64_t>& dims, std::span<const float> values);
  std::string initializer(std::string_view name, const std::vector<int64_t>& dims, std::span<const int64_t> values);
  // Adds a node with one output and returns that output's name. An empty input name leaves an optional input out.
  std::string node(std::string_view op_type, const std::vector<std::string>& inputs,
                   const std::vector<AttributeSpec>& attributes = {}, std::string output = {});
  // Adds a node with any outputs, in any domain.
  void node_with_outputs(std::string_view op_type, const std::vector<std::string>& inputs,
                         const std::vector<std::string>& outputs, const std::vector<AttributeSpec>& attributes = {},
                         std::string_view domain = {});
  // Appends an encoded field of GraphProto; for messages that no other function writes.
  void raw_field(uint32_t number, std::string_view message);

  EncodedGraph finish() && { return {std::move(bytes_)}; }

 private:
  std::string bytes_;
  int64_t next_node_ = 0;
};

struct OpsetSpec {
  std::string domain;
  int64_t version;
};

// Returns the encoded ModelProto.
std::string encode_model(const EncodedGraph& graph, const std::vector<OpsetSpec>& opsets = {{"", 13}},
                         int64_t ir_version = 7);

}  // namespace headrace::kit
