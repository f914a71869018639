// Reads the graphs of nodes that TVM's save_json writes, versions 0.6 to 0.18, as in the #[metadata] of TVM's texts.
//
//   {"root": 1, "nodes": [{"type_key": ""},
//                         {"type_key": "Map", "keys": ["relay.Constant"], "data": [2]},
//                         {"type_key": "Array", "data": [3]},
//                         {"type_key": "relay.Constant", "attrs": {"data": "0", "span": "0"}}],
//    "b64ndarrays": ["P6G0lvBAXt0A..."], "attrs": {"tvm_version": "0.8.0"}}
//
// A node names other nodes by their places in the list; place 0 is None. Attributes are strings, whose meaning only the
// kind of the node gives. So the kinds that are read are a fixed list (tvm_kinds.cc): containers, strings and numbers,
// types, dimensions, variables, ops, constants, devices and targets. Spans, and types and devices that TVM notes at
// expressions, are skipped.
#pragma once

#include "object/value.h"

namespace headrace::relay {

// An error in a text of JSON, with its place there.
class TvmJsonError : public UserError {
 public:
  TvmJsonError(std::string message, size_t offset) : UserError(std::move(message)), offset_(offset) {}
  size_t offset() const { return offset_; }

 private:
  size_t offset_;
};

// Returns whether a text looks like such a graph; load_json reads no text that does.
bool is_tvm_json(std::string_view text);

// Returns the root of a graph, with the sharing it had. Ops must be registered before (ops/all_ops.h). TvmJsonError for
// anything that TVM would not write, with the node: wrong syntax, places of no node, nodes that are parts of
// themselves, attributes that are missing or of another kind, damaged tensors, and for kinds of nodes that are not
// read. Constant stack; takes memory in proportion to the text.
Value read_tvm_json(std::string_view text);

}  // namespace headrace::relay
