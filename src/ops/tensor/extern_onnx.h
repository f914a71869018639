// extern.onnx: a node of an ONNX model for which there is no op here. The importer (frontend/onnx) makes it where a
// chosen backend says that it computes the node; nothing else does:
//
//   extern.onnx((%x, %w), node="CgF4...", op="com.example.Gelu", opset=1, results=["float32[1,8]"])
//
// Its argument is a tuple of the node's inputs without those that are left out.
#pragma once

#include "ops/register.h"

namespace headrace::ops {

// A node that no op stands for, as the importer shows it to backends.
struct OnnxNode {
  std::string bytes;                     // the NodeProto
  std::string op;                        // its operator: "Gelu", "com.example.Gelu"
  int64_t opset = 0;                     // the version of the operator's domain
  std::vector<Expr> inputs = {};         // typed; without those that are left out
  std::vector<TensorType> results = {};  // the type of each output, as the model declares it; null where it does not
  Span span = {};
};

struct ExternOnnxAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.ExternOnnxAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<ExternOnnxAttrs>& f);
  std::string node;
  std::string op;
  int64_t opset = 0;
  Array<std::string> results;
};

// Returns whether all types are there, with known sizes.
bool are_known(const std::vector<TensorType>& types);

// Makes the call of a node whose results are all known: of one tensor, or of a tuple.
Expr extern_onnx(const OnnxNode& node);

}  // namespace headrace::ops
