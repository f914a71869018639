#include "relay/op_keys.h"

namespace headrace::relay {

TensorType RelationInput::tensor(size_t i) const {
  if (i >= arg_types.size()) fail(fmt::format("argument {} is missing: got {}", i, arg_types.size()));
  const Type& type = arg_types[i];
  if (type.is<IncompleteTypeNode>()) return {};
  if (!type.is<TensorTypeNode>()) fail(fmt::format("argument {} must be a tensor, got {}", i, to_string(type)));
  return type.cast<TensorTypeNode>();
}

std::vector<TensorType> RelationInput::tensors(size_t i) const {
  if (i >= arg_types.size()) fail(fmt::format("argument {} is missing: got {}", i, arg_types.size()));
  const Type& type = arg_types[i];
  if (type.is<IncompleteTypeNode>()) return {TensorType()};
  const auto* tuple = type.as<TupleTypeNode>();
  if (tuple == nullptr) fail(fmt::format("argument {} must be a tuple of tensors, got {}", i, to_string(type)));
  std::vector<TensorType> result;
  for (const Type& item : tuple->items) {
    if (!item.is<TensorTypeNode>() && !item.is<IncompleteTypeNode>()) {
      fail(fmt::format("argument {}: item {} must be a tensor, got {}", i, result.size(), to_string(item)));
    }
    result.push_back(item.cast<TensorTypeNode>());
  }
  return result;
}

void RelationInput::fail(std::string message) const {
  const std::string name = call.as_op() != nullptr ? call.as_op()->name : "call";
  throw_at(call.span, name, fmt::format("{}: {}", name, message));
}

std::optional<std::vector<PrimExpr>> known_integers(const NDArray& data) {
  const bool is_uint64 = data.dtype() == DataType::uint(64);
  std::vector<PrimExpr> values;
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    const int64_t value = element_as_int(data.tensor(), i);
    if (is_uint64 && value < 0) return std::nullopt;
    values.push_back(make_int(value));
  }
  return values;
}

}  // namespace headrace::relay
