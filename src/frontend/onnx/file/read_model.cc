#include "frontend/onnx/file/read_model.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/file/model_file.h"
#include "frontend/onnx/file/read_values.h"

namespace headrace::onnx {

namespace {

void read_graph(const Source& source, std::string_view message, const Place* parent, int depth, Graph& graph);

// AttributeProto.type is missing in files of IR version 1: the field that is present says the kind.
AttributeKind kind_of_field(uint32_t field) {
  switch (field) {
    case 2:
      return AttributeKind::kFloat;
    case 3:
      return AttributeKind::kInt;
    case 4:
      return AttributeKind::kString;
    case 5:
      return AttributeKind::kTensor;
    case 6:
      return AttributeKind::kGraph;
    case 7:
      return AttributeKind::kFloats;
    case 8:
      return AttributeKind::kInts;
    case 9:
      return AttributeKind::kStrings;
    case 10:
      return AttributeKind::kTensors;
    case 11:
      return AttributeKind::kGraphs;
    case 14:
      return AttributeKind::kTypeProto;
    case 15:
      return AttributeKind::kTypeProtos;
    case 22:
      return AttributeKind::kSparseTensor;
    case 23:
      return AttributeKind::kSparseTensors;
    default:
      return AttributeKind::kUndefined;
  }
}

void read_attribute_value(FieldReader& reader, const Source& source, const Place& place, int depth,
                          Attribute& attribute) {
  switch (kind_of_field(reader.field())) {
    case AttributeKind::kFloat:
      attribute.f = reader.read_float();
      break;
    case AttributeKind::kInt:
      attribute.i = reader.read_int();
      break;
    case AttributeKind::kString:
      attribute.s = reader.read_bytes();
      break;
    case AttributeKind::kFloats:
      reader.read_floats(attribute.floats);
      break;
    case AttributeKind::kInts:
      reader.read_ints(attribute.ints);
      break;
    case AttributeKind::kStrings:
      attribute.strings.push_back(reader.read_bytes());
      break;
    case AttributeKind::kTensor:
    case AttributeKind::kTensors:
      read_tensor(source, reader.read_bytes(), &place, "tensor", attribute.tensors.emplace_back());
      break;
    case AttributeKind::kSparseTensor:
    case AttributeKind::kSparseTensors:
      read_sparse_tensor(source, reader.read_bytes(), place, attribute.sparse_tensors.emplace_back());
      break;
    case AttributeKind::kGraph:
    case AttributeKind::kGraphs:
      read_graph(source, reader.read_bytes(), &place, depth + 1, attribute.graphs.emplace_back());
      break;
    case AttributeKind::kTypeProto:
    case AttributeKind::kTypeProtos:
      read_type(source, reader.read_bytes(), place, 0, attribute.types.emplace_back());
      break;
    case AttributeKind::kUndefined:
      reader.skip();
  }
}

// How many values the singular kinds of messages must have, so that readers of the attribute may take the first.
bool has_its_value(const Attribute& attribute) {
  switch (attribute.kind) {
    case AttributeKind::kTensor:
      return attribute.tensors.size() == 1;
    case AttributeKind::kSparseTensor:
      return attribute.sparse_tensors.size() == 1;
    case AttributeKind::kGraph:
      return attribute.graphs.size() == 1;
    case AttributeKind::kTypeProto:
      return attribute.types.size() == 1;
    default:
      return true;
  }
}

void read_attribute(const Source& source, std::string_view message, const Place& parent, int depth,
                    Attribute& attribute) {
  Place place{.parent = &parent, .what = "attribute", .name = &attribute.name};
  AttributeKind inferred = AttributeKind::kUndefined;
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        attribute.name = reader.read_text();
        break;
      case 20:
        attribute.kind = static_cast<AttributeKind>(reader.read_int32());
        break;
      case 21:
        attribute.ref_name = reader.read_text();
        break;
      default:
        if (kind_of_field(reader.field()) != AttributeKind::kUndefined) inferred = kind_of_field(reader.field());
        read_attribute_value(reader, source, place, depth, attribute);
    }
  }
  if (attribute.name.empty()) reader.fail("an attribute has no name");
  if (attribute.kind == AttributeKind::kUndefined) attribute.kind = inferred;
  auto kind = static_cast<int32_t>(attribute.kind);
  if (kind < 0 || kind > static_cast<int32_t>(AttributeKind::kTypeProtos)) {
    reader.fail(fmt::format("the attribute has the unknown type {}", kind));
  }
  if (attribute.ref_name.empty() && !has_its_value(attribute)) {
    reader.fail("the attribute must hold exactly one value");
  }
}

void read_node(const Source& source, std::string_view message, const Place& parent, int depth, int64_t index,
               Node& node) {
  Place place{.parent = &parent, .what = "node", .index = index, .name = &node.name};
  node.message = message;
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        node.inputs.push_back(reader.read_text());
        break;
      case 2:
        node.outputs.push_back(reader.read_text());
        break;
      case 3:
        node.name = reader.read_text();
        break;
      case 4:
        node.op_type = reader.read_text();
        break;
      case 5:
        read_attribute(source, reader.read_bytes(), place, depth, node.attributes.emplace_back());
        break;
      case 7:
        node.domain = reader.read_text();
        break;
      case 8:
        node.overload = reader.read_text();
        break;
      default:
        reader.skip();
    }
  }
  if (node.op_type.empty()) reader.fail("a node has no op_type");
}

void read_graph(const Source& source, std::string_view message, const Place* parent, int depth, Graph& graph) {
  Place place{.parent = parent, .what = "graph", .name = &graph.name};
  FieldReader reader(source, message, place);
  if (depth > kMaxGraphDepth) reader.fail(fmt::format("subgraphs are nested deeper than {} levels", kMaxGraphDepth));
  while (reader.next()) {
    switch (reader.field()) {
      case 1: {
        auto index = std::ssize(graph.nodes);
        read_node(source, reader.read_bytes(), place, depth, index, graph.nodes.emplace_back());
        break;
      }
      case 2:
        graph.name = reader.read_text();
        break;
      case 5:
        read_tensor(source, reader.read_bytes(), &place, "initializer", graph.initializers.emplace_back());
        break;
      case 10:
        graph.doc = reader.read_bytes();
        break;
      case 11:
        read_value_info(source, reader.read_bytes(), place, "input", graph.inputs.emplace_back());
        break;
      case 12:
        read_value_info(source, reader.read_bytes(), place, "output", graph.outputs.emplace_back());
        break;
      case 13:
        read_value_info(source, reader.read_bytes(), place, "value_info", graph.value_infos.emplace_back());
        break;
      case 15:
        read_sparse_tensor(source, reader.read_bytes(), place, graph.sparse_initializers.emplace_back());
        break;
      default:
        reader.skip();
    }
  }
}

void read_opset_import(const Source& source, std::string_view message, const Place& place, OpsetImport& import) {
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        import.domain = reader.read_text();
        break;
      case 2:
        import.version = reader.read_int();
        break;
      default:
        reader.skip();
    }
  }
}

// Returns the domain of the last import if an earlier one imports another version of it.
const std::string_view* contradicting_domain(const std::vector<OpsetImport>& imports) {
  const OpsetImport& last = imports.back();
  const auto contradicts = [&](const OpsetImport& import) {
    const bool is_same =
        import.domain == last.domain || (is_default_domain(import.domain) && is_default_domain(last.domain));
    return is_same && import.version != last.version;
  };
  return std::any_of(imports.begin(), imports.end() - 1, contradicts) ? &last.domain : nullptr;
}

void read_function(const Source& source, std::string_view message, const Place& parent, ModelFunction& function) {
  Place place{.parent = &parent, .what = "function", .name = &function.name};
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        function.name = reader.read_text();
        break;
      case 4:
        function.inputs.push_back(reader.read_text());
        break;
      case 5:
        function.outputs.push_back(reader.read_text());
        break;
      case 6:
        function.attributes.push_back(reader.read_text());
        break;
      case 7: {
        auto index = std::ssize(function.nodes);
        read_node(source, reader.read_bytes(), place, 0, index, function.nodes.emplace_back());
        break;
      }
      case 9:
        read_opset_import(source, reader.read_bytes(), place, function.opset_imports.emplace_back());
        break;
      case 10:
        function.domain = reader.read_text();
        break;
      case 11:
        read_attribute(source, reader.read_bytes(), place, 0, function.default_attributes.emplace_back());
        break;
      case 13:
        function.overload = reader.read_text();
        break;
      default:
        reader.skip();
    }
  }
}

// Texts for people, as `doc` is: bytes that are not UTF-8 make no model unreadable.
void read_property(const Source& source, std::string_view message, const Place& place, KeyValue& property) {
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        property.key = reader.read_bytes();
        break;
      case 2:
        property.value = reader.read_bytes();
        break;
      default:
        reader.skip();
    }
  }
}

// Reads a field of ModelProto that says where the model is from, or passes over it.
void read_note(FieldReader& reader, const Source& source, const Place& place, Model& model) {
  switch (reader.field()) {
    case 2:
      model.producer_name = reader.read_text();
      break;
    case 3:
      model.producer_version = reader.read_text();
      break;
    case 4:
      model.domain = reader.read_bytes();
      break;
    case 5:
      model.version = reader.read_int();
      break;
    case 6:
      model.doc = reader.read_bytes();
      break;
    case 14:
      read_property(source, reader.read_bytes(), place, model.properties.emplace_back());
      break;
    default:
      reader.skip();
  }
}

// Reads the fields of ModelProto; true when one of them was the graph.
bool read_model_fields(const Source& source, std::string_view message, Model& model) {
  Place place{.what = "model"};
  FieldReader reader(source, message, place);
  bool has_graph = false;
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        model.ir_version = reader.read_int();
        break;
      case 7:
        if (has_graph) reader.fail("the model has two graphs");
        has_graph = true;
        read_graph(source, reader.read_bytes(), &place, 0, model.graph);
        break;
      case 8:
        read_opset_import(source, reader.read_bytes(), place, model.opset_imports.emplace_back());
        if (const std::string_view* domain = contradicting_domain(model.opset_imports))
          reader.fail(fmt::format("the model imports two versions of the operator set {}", printable(*domain)));
        break;
      case 25:
        read_function(source, reader.read_bytes(), place, model.functions.emplace_back());
        break;
      default:
        read_note(reader, source, place, model);
    }
  }
  return has_graph;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// Throws UserError if what was no model is text: a web page, or what Git LFS leaves in place of a file that it did not
// fetch. Call when reading has failed, because a model may begin with hundreds of printable bytes.
void refuse_text(std::string_view bytes, const std::string& source) {
  constexpr size_t kLooked = 512;
  const std::string_view start = bytes.substr(0, kLooked);
  const bool is_text = std::all_of(start.begin(), start.end(), [](char one) {
    const auto byte = static_cast<unsigned char>(one);
    return byte >= 0x20 ? byte != 0x7f : (one == '\t' || one == '\n' || one == '\r');
  });
  if (start.starts_with("version https://git-lfs.github.com/spec/")) {
    throw_user_error(
        "'{}' is a pointer of Git LFS, not an ONNX model; fetch the file that it stands for with git lfs pull", source);
  }
  if (is_text)
    throw_user_error("'{}' is text, not an ONNX model; it may be a web page or a text form of a model", source);
}

}  // namespace

Model read_model(std::span<const std::byte> bytes, std::string source, std::string directory) {
  Model model;
  model.source = std::move(source);
  model.directory = std::move(directory);
  if (bytes.empty()) throw_user_error("'{}' is empty, not an ONNX model; copy or export it again", model.source);
  std::string_view text = as_text(bytes);
  bool has_graph = false;
  try {
    has_graph = read_model_fields({text.data(), model.source}, text, model);
  } catch (const UserError&) {
    refuse_text(text, model.source);
    throw;
  }
  if (!has_graph) {
    refuse_text(text, model.source);
    throw_user_error("'{}' has no graph: it is not an ONNX model; give one that an exporter wrote", model.source);
  }
  return model;
}

Model read_model(const std::string& path) {
  auto file = std::make_shared<const ModelFile>(path);
  std::string directory = std::filesystem::path(path).parent_path().string();
  Model model = read_model(std::as_bytes(std::span(file->bytes())), path, directory.empty() ? "." : directory);
  model.file = std::move(file);
  return model;
}

TensorProto read_tensor_proto(std::string_view bytes, std::string_view source) {
  TensorProto tensor;
  read_tensor({bytes.data(), source}, bytes, nullptr, "tensor", tensor);
  return tensor;
}

int64_t default_opset(const Model& model) {
  int64_t version = 0;
  for (const OpsetImport& import : model.opset_imports) {
    if (is_default_domain(import.domain)) version = import.version;
  }
  if (version == 0) {
    throw_user_error(
        "'{}' imports no version of the default operator set; versions {} to {} are supported: add one to its "
        "opset_import",
        model.source, kOldestOpset, kNewestOpset);
  }
  if (version < kOldestOpset || version > kNewestOpset) {
    throw_user_error(
        "'{}' uses version {} of the default operator set; versions {} to {} are supported: convert the model with "
        "onnx.version_converter, or export it again with one of these",
        model.source, version, kOldestOpset, kNewestOpset);
  }
  return version;
}

}  // namespace headrace::onnx
