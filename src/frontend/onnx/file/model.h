// An ONNX model as plain structs, one per message of onnx.proto (IR version 3 and later), with what the importer reads.
//
// Strings and tensor bytes are views into the bytes the model was read from; they live as long as `Model::file`
// (or, for a model read from memory, as long as the caller keeps those bytes). The large data of a file's initialisers
// is not in memory: TensorSource reads it (model_file.h).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace headrace::onnx {

class ModelFile;

// TensorProto.DataType; the numbers are those of the format. A file may hold a number that is not listed here.
enum class ElementType : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBfloat16 = 16,
  kFloat8E4M3Fn = 17,
  kFloat8E4M3Fnuz = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2Fnuz = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};

// The type's name as Relay and numpy write it, "float32"; "type 23" for a number that is not listed above.
std::string element_type_name(ElementType type);

// The type of that name; kUndefined for a name that no type has.
ElementType find_element_type(std::string_view name);

// Bytes of one element in memory; 0 for strings and for types that no tensor here has.
int64_t element_size_bytes(ElementType type);

// Bits of one element as the format stores it: below 8 where a byte holds several, the first in its lowest bits.
int64_t stored_bits(ElementType type);
// Bytes of `count` elements as raw data or external data; the last may be partly used.
int64_t stored_bytes(ElementType type, int64_t count);

struct KeyValue {
  std::string_view key;
  std::string_view value;
};

// A TensorProto without its data: `message` is the encoded message, from which load_tensor decodes what it needs.
struct TensorProto {
  std::string_view name;
  ElementType type = ElementType::kUndefined;
  std::vector<int64_t> dims;                 // none is negative
  std::optional<std::string_view> raw_data;  // its bytes may be in the model's file only, as those of `message`
  bool is_external = false;                  // the data lies in another file, described by `external_data`
  std::vector<KeyValue> external_data;
  std::string_view message;
};

struct SparseTensorProto {
  TensorProto values;
  TensorProto indices;
  std::vector<int64_t> dims;
};

// One dimension: a number (value >= 0), a name, or neither (unknown).
struct Dim {
  int64_t value = -1;
  std::string_view symbol;
  std::string_view denotation = {};  // its meaning, "DATA_BATCH"; any bytes, empty where the file does not say
};

enum class ValueKind { kUnknown, kTensor, kSparseTensor, kSequence, kMap, kOptional, kOpaque };

struct ValueType {
  ValueKind kind = ValueKind::kUnknown;
  ElementType element_type = ElementType::kUndefined;  // a tensor's elements, or a map's keys
  std::optional<std::vector<Dim>> shape;               // shape of a tensor; absent: unknown rank
  std::vector<ValueType> inner;                        // the one element type of a sequence, map or optional
};

struct ValueInfo {
  std::string_view name;
  ValueType type;
};

// AttributeProto.AttributeType; the numbers are those of the format.
enum class AttributeKind : int32_t {
  kUndefined = 0,
  kFloat = 1,
  kInt = 2,
  kString = 3,
  kTensor = 4,
  kGraph = 5,
  kFloats = 6,
  kInts = 7,
  kStrings = 8,
  kTensors = 9,
  kGraphs = 10,
  kSparseTensor = 11,
  kSparseTensors = 12,
  kTypeProto = 13,
  kTypeProtos = 14,
};

struct Graph;

// `kind` says which of the fields holds the value: the singular kinds use `f`, `i`, `s` and the first element of
// the vectors, the plural kinds use the vectors.
struct Attribute {
  std::string_view name;
  std::string_view ref_name;  // inside a function: the function's attribute that gives the value
  AttributeKind kind = AttributeKind::kUndefined;
  float f = 0;
  int64_t i = 0;
  std::string_view s;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string_view> strings;
  std::vector<TensorProto> tensors;
  std::vector<SparseTensorProto> sparse_tensors;
  std::vector<Graph> graphs;
  std::vector<ValueType> types;
};

// An empty input or output name is an optional one left out.
struct Node {
  std::string_view name;
  std::string_view op_type;  // never empty
  std::string_view domain;
  std::string_view overload;  // IR version 10: which of the functions of that name and domain is called
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<Attribute> attributes;
  std::string_view message;  // the encoded NodeProto

  // The attribute of that name, or null.
  const Attribute* find_attribute(std::string_view attribute_name) const;
  // Whether an attribute is a graph, as those of Loop are.
  bool has_graphs() const;
};

struct Graph {
  std::string_view name;
  std::string_view doc;  // any bytes
  std::vector<Node> nodes;
  std::vector<TensorProto> initializers;
  std::vector<SparseTensorProto> sparse_initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
  std::vector<ValueInfo> value_infos;
};

struct OpsetImport {
  std::string_view domain;  // empty and "ai.onnx" are the default domain
  int64_t version = 0;
};

// A function of the model (IR version 8): a named list of nodes that a node may call.
struct ModelFunction {
  std::string_view name;
  std::string_view domain;
  std::string_view overload;
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;
  std::vector<Attribute> default_attributes;
  std::vector<Node> nodes;
  std::vector<OpsetImport> opset_imports;
};

struct Model {
  int64_t ir_version = 0;
  std::string_view producer_name;
  std::string_view producer_version;
  std::string_view domain;  // any bytes, as `doc` and `properties`
  int64_t version = 0;      // version of the model
  std::string_view doc;
  std::vector<KeyValue> properties;  // the producer's notes about the model
  std::vector<OpsetImport> opset_imports;
  Graph graph;
  std::vector<ModelFunction> functions;

  std::string source;                     // the model's name in messages: the file's path, or a name from the caller
  std::string directory;                  // the folder of external data files; empty: external data is an error
  std::shared_ptr<const ModelFile> file;  // null when the model was read from the caller's memory
};

// Returns the paths of the model's external data files, as written in the model, sorted and without duplicates.
// Includes those of subgraphs and functions. Linear in the model's size.
std::vector<std::string> external_locations(const Model& model);

// True for the names of the domain that the ONNX standard operators live in.
inline bool is_default_domain(std::string_view domain) { return domain.empty() || domain == "ai.onnx"; }

}  // namespace headrace::onnx
