// The few fields of an encoded NodeProto that a call of extern.onnx says again.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace headrace::ops {

struct OnnxNodeFields {
  std::string op;         // with the domain if that is not the default one
  size_t num_inputs = 0;  // without those that are left out
  size_t num_outputs = 0;
};

// Reads them; nothing for bytes that are not a message of Protocol Buffers. Fields that it does not know are skipped.
std::optional<OnnxNodeFields> read_onnx_node(std::span<const std::byte> bytes);

}  // namespace headrace::ops
