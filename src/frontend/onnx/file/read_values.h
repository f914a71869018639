// Decoders of the messages that describe values: tensors and types. Used by read_model.cc.
#pragma once

#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/file/model.h"

namespace headrace::onnx {

// Numbers of fields: the graph of a ModelProto, an initialiser of a GraphProto.
inline constexpr uint32_t kModelGraph = 7, kGraphInitializer = 5;

// The decoders fill a result in place, so that `place` can show its name as soon as it is read.
void read_tensor(const Source& source, std::string_view message, const Place* parent, std::string_view what,
                 TensorProto& tensor);
void read_sparse_tensor(const Source& source, std::string_view message, const Place& place, SparseTensorProto& tensor);
void read_value_info(const Source& source, std::string_view message, const Place& parent, std::string_view what,
                     ValueInfo& info);
void read_type(const Source& source, std::string_view message, const Place& place, int depth, ValueType& type);

}  // namespace headrace::onnx
