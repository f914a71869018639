// The bytes of an ONNX model with other initialisers.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>

#include "tensor/ndarray.h"

namespace headrace::onnx {

// Protobuf's readers take no message longer than this.
inline constexpr size_t kLongestMessage = 0xffffffff;

// Returns the model in which the initialisers of the main graph that `replaced` names hold these tensors, of the
// tensors' dtypes and shapes, and those that `dropped` names are left out, so that inputs of their names must be given.
// All else stays, byte for byte; names that no initialiser has change nothing. Decodes only what it needs for that, and
// throws UserError where this is malformed, for a dtype that ONNX's tensors do not have, and for a graph that would be
// longer than kLongestMessage. `source` names the model in messages.
std::string with_initializers(std::span<const std::byte> model, std::string_view source,
                              const std::map<std::string, NDArray, std::less<>>& replaced,
                              const std::set<std::string, std::less<>>& dropped);

}  // namespace headrace::onnx
