#include "ops/op_facts.h"

namespace headrace::ops {

bool only_reshapes(const OpNode& op) {
  const KeepsElements* keeps = op.find(kKeepsElements);
  return keeps != nullptr && *keeps != KeepsElements::note;
}

std::optional<size_t> unknown_axis(const TensorTypeNode* type) {
  std::optional<size_t> found;
  for (size_t i = 0; type != nullptr && i < type->shape.size(); ++i) {
    if (as_int(type->shape[i])) continue;
    if (found || !is_any(type->shape[i])) return std::nullopt;
    found = i;
  }
  return found;
}

}  // namespace headrace::ops
