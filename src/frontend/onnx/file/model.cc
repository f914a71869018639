#include "frontend/onnx/file/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

namespace headrace::onnx {

namespace {

struct TypeRow {
  std::string_view name;
  int64_t size_bytes;
  int64_t packed_bits = 0;  // below 8: an element shares a byte with others
};

constexpr std::array<TypeRow, 27> kTypes = {{
    {"undefined", 0},       {"float32", 4},       {"uint8", 1},           {"int8", 1},
    {"uint16", 2},          {"int16", 2},         {"int32", 4},           {"int64", 8},
    {"string", 0},          {"bool", 1},          {"float16", 2},         {"float64", 8},
    {"uint32", 4},          {"uint64", 8},        {"complex64", 8},       {"complex128", 16},
    {"bfloat16", 2},        {"float8_e4m3fn", 1}, {"float8_e4m3fnuz", 1}, {"float8_e5m2", 1},
    {"float8_e5m2fnuz", 1}, {"uint4", 1, 4},      {"int4", 1, 4},         {"float4_e2m1fn", 1, 4},
    {"float8_e8m0fnu", 0},  {"uint2", 1, 2},      {"int2", 1, 2},
}};

const TypeRow* find_type(ElementType type) {
  auto index = static_cast<int64_t>(type);
  return index >= 0 && index < std::ssize(kTypes) ? &kTypes[static_cast<size_t>(index)] : nullptr;
}

}  // namespace

std::string element_type_name(ElementType type) {
  const TypeRow* row = find_type(type);
  return row ? std::string(row->name) : fmt::format("type {}", static_cast<int32_t>(type));
}

ElementType find_element_type(std::string_view name) {
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (kTypes[i].name == name) return static_cast<ElementType>(i);
  }
  return ElementType::kUndefined;
}

int64_t element_size_bytes(ElementType type) {
  const TypeRow* row = find_type(type);
  return row ? row->size_bytes : 0;
}

int64_t stored_bits(ElementType type) {
  const TypeRow* row = find_type(type);
  return row == nullptr ? 0 : row->packed_bits != 0 ? row->packed_bits : row->size_bytes * 8;
}

int64_t stored_bytes(ElementType type, int64_t count) {
  const int64_t bits = stored_bits(type);
  return bits % 8 == 0 ? count * (bits / 8) : count / (8 / bits) + (count % (8 / bits) != 0 ? 1 : 0);
}

std::vector<std::string> external_locations(const Model& model) {
  std::set<std::string> locations;
  const auto add = [&](const TensorProto& tensor) {
    for (const KeyValue& entry : tensor.external_data) {
      if (tensor.is_external && entry.key == "location") locations.emplace(entry.value);
    }
  };
  std::vector<const Graph*> graphs{&model.graph};
  const auto add_attributes = [&](const std::vector<Attribute>& attributes) {
    for (const Attribute& attribute : attributes) {
      for (const TensorProto& tensor : attribute.tensors) add(tensor);
      for (const Graph& inner : attribute.graphs) graphs.push_back(&inner);
    }
  };
  for (const ModelFunction& function : model.functions) {
    add_attributes(function.default_attributes);
    for (const Node& node : function.nodes) add_attributes(node.attributes);
  }
  while (!graphs.empty()) {
    const Graph& graph = *graphs.back();
    graphs.pop_back();
    for (const TensorProto& tensor : graph.initializers) add(tensor);
    for (const Node& node : graph.nodes) add_attributes(node.attributes);
  }
  return {locations.begin(), locations.end()};
}

bool Node::has_graphs() const {
  return std::any_of(attributes.begin(), attributes.end(), [](const Attribute& one) { return !one.graphs.empty(); });
}

const Attribute* Node::find_attribute(std::string_view attribute_name) const {
  for (const Attribute& attribute : attributes) {
    if (attribute.name == attribute_name) return &attribute;
  }
  return nullptr;
}

}  // namespace headrace::onnx
