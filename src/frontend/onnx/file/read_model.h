// Decodes the wire format of ONNX files. Checks only the encoding; the importer checks whether the model is valid and
// supported.
//
// Throws UserError, which names the place in the model and the byte offset, for any malformed input. Takes time and
// memory linear in the size of the input. The nesting of subgraphs and types is limited.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "frontend/onnx/file/model.h"

namespace headrace::onnx {

// Subgraphs (If, Loop, Scan) deeper than this, and types (sequence of optional of ...) deeper than kMaxTypeDepth,
// are refused.
inline constexpr int kMaxGraphDepth = 32;
inline constexpr int kMaxTypeDepth = 8;

inline constexpr int64_t kOldestOpset = 6;
inline constexpr int64_t kNewestOpset = 25;

// Reads the file without the large data of its initialisers (model_file.h) and decodes it. Throws UserError when the
// file cannot be read, is written meanwhile, or is not an ONNX model.
Model read_model(const std::string& path);

// Decodes a model from memory that outlives the result. `source` names it in messages; `directory` is where its
// external data files lie (empty: a tensor with external data is an error).
Model read_model(std::span<const std::byte> bytes, std::string source, std::string directory = {});

// Decodes a file that holds a single tensor, as test data and external tools store them.
TensorProto read_tensor_proto(std::string_view bytes, std::string_view source);

// Returns the version of the default operator set that the model imports. Throws UserError, which lists the supported
// versions, if it imports none or one outside kOldestOpset..kNewestOpset.
int64_t default_opset(const Model& model);

}  // namespace headrace::onnx
