#include "frontend/onnx/file/read_values.h"

#include <fmt/format.h>

#include "frontend/onnx/file/read_model.h"

namespace headrace::onnx {

namespace {

KeyValue read_key_value(const Source& source, std::string_view message, const Place& place) {
  KeyValue entry;
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        entry.key = reader.read_text();
        break;
      case 2:
        entry.value = reader.read_text();
        break;
      default:
        reader.skip();
    }
  }
  return entry;
}

Dim read_dim(const Source& source, std::string_view message, const Place& place) {
  Dim dim;
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        // Some exporters write -1 for "unknown".
        dim.value = std::max<int64_t>(reader.read_int(), -1);
        dim.symbol = {};
        break;
      case 2:
        dim.value = -1;
        dim.symbol = reader.read_text();
        break;
      case 3:
        dim.denotation = reader.read_bytes();
        break;
      default:
        reader.skip();
    }
  }
  return dim;
}

std::vector<Dim> read_shape(const Source& source, std::string_view message, const Place& place) {
  std::vector<Dim> shape;
  FieldReader reader(source, message, place);
  while (reader.next()) {
    if (reader.field() == 1) {
      shape.push_back(read_dim(source, reader.read_bytes(), place));
    } else {
      reader.skip();
    }
  }
  return shape;
}

// TypeProto.Tensor and TypeProto.SparseTensor have the same fields.
void read_tensor_type(const Source& source, std::string_view message, const Place& place, ValueType& type) {
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        type.element_type = static_cast<ElementType>(reader.read_int32());
        break;
      case 2:
        type.shape = read_shape(source, reader.read_bytes(), place);
        break;
      default:
        reader.skip();
    }
  }
}

// TypeProto.Sequence, .Optional (element type in field 1) and .Map (key in field 1, value type in field 2).
void read_container_type(const Source& source, std::string_view message, const Place& place, int depth,
                         ValueType& type) {
  bool is_map = type.kind == ValueKind::kMap;
  FieldReader reader(source, message, place);
  while (reader.next()) {
    if (is_map && reader.field() == 1) {
      type.element_type = static_cast<ElementType>(reader.read_int32());
    } else if (reader.field() == (is_map ? 2U : 1U)) {
      type.inner.assign(1, {});
      read_type(source, reader.read_bytes(), place, depth + 1, type.inner[0]);
    } else {
      reader.skip();
    }
  }
}

ValueKind value_kind(uint32_t field) {
  switch (field) {
    case 1:
      return ValueKind::kTensor;
    case 4:
      return ValueKind::kSequence;
    case 5:
      return ValueKind::kMap;
    case 7:
      return ValueKind::kOpaque;
    case 8:
      return ValueKind::kSparseTensor;
    case 9:
      return ValueKind::kOptional;
    default:
      return ValueKind::kUnknown;
  }
}

}  // namespace

void read_type(const Source& source, std::string_view message, const Place& place, int depth, ValueType& type) {
  FieldReader reader(source, message, place);
  if (depth > kMaxTypeDepth) reader.fail(fmt::format("types are nested deeper than {} levels", kMaxTypeDepth));
  while (reader.next()) {
    ValueKind kind = value_kind(reader.field());
    if (kind == ValueKind::kUnknown) {
      reader.skip();
      continue;
    }
    type = {};
    type.kind = kind;
    std::string_view inner = reader.read_bytes();
    if (kind == ValueKind::kTensor || kind == ValueKind::kSparseTensor) {
      read_tensor_type(source, inner, place, type);
    } else if (kind != ValueKind::kOpaque) {
      read_container_type(source, inner, place, depth, type);
    }
  }
}

void read_value_info(const Source& source, std::string_view message, const Place& parent, std::string_view what,
                     ValueInfo& info) {
  Place place{.parent = &parent, .what = what, .name = &info.name};
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        info.name = reader.read_text();
        break;
      case 2:
        read_type(source, reader.read_bytes(), place, 0, info.type);
        break;
      default:
        reader.skip();
    }
  }
}

void read_tensor(const Source& source, std::string_view message, const Place* parent, std::string_view what,
                 TensorProto& tensor) {
  Place place{.parent = parent, .what = what, .name = &tensor.name};
  tensor.message = message;
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        reader.read_ints(tensor.dims);
        break;
      case 2:
        tensor.type = static_cast<ElementType>(reader.read_int32());
        break;
      case 3:
        reader.fail("tensors in segments are not supported");
      case 8:
        tensor.name = reader.read_text();
        break;
      case 9:
        tensor.raw_data = reader.read_bytes();
        break;
      case 13:
        tensor.external_data.push_back(read_key_value(source, reader.read_bytes(), place));
        break;
      case 14:
        tensor.is_external = reader.read_int() == 1;
        break;
      default:
        reader.skip();
    }
  }
  for (int64_t dim : tensor.dims) {
    if (dim < 0) reader.fail(fmt::format("a dimension of the tensor is {}", dim));
  }
}

void read_sparse_tensor(const Source& source, std::string_view message, const Place& place, SparseTensorProto& tensor) {
  FieldReader reader(source, message, place);
  while (reader.next()) {
    switch (reader.field()) {
      case 1:
        tensor.values = {};
        read_tensor(source, reader.read_bytes(), &place, "sparse values", tensor.values);
        break;
      case 2:
        tensor.indices = {};
        read_tensor(source, reader.read_bytes(), &place, "sparse indices", tensor.indices);
        break;
      case 3:
        reader.read_ints(tensor.dims);
        break;
      default:
        reader.skip();
    }
  }
}

}  // namespace headrace::onnx
