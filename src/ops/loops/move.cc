#include "ops/loops/move.h"

#include "ops/loops/index_value.h"

namespace headrace::ops {

std::vector<int64_t> to_ints(const NDArray& array) {
  std::vector<int64_t> result;
  for (int64_t i = 0; i < array.num_elements(); ++i) result.push_back(index_at(array, i));
  return result;
}

std::optional<std::vector<int64_t>> known_ints(const RelationInput& input, size_t i) {
  const auto value = input.arg_value(i);
  if (!value) return std::nullopt;
  std::vector<int64_t> result;
  for (const PrimExpr& element : *value) {
    const auto number = as_int(element);
    if (!number) return std::nullopt;
    result.push_back(*number);
  }
  return result;
}

namespace {

std::vector<TensorType> flatten(const Type& type) {
  std::vector<TensorType> result;
  if (const auto* tuple = type.as<TupleTypeNode>()) {
    for (const Type& item : tuple->items) result.push_back(item.cast<TensorTypeNode>());
  } else {
    result.push_back(type.cast<TensorTypeNode>());
  }
  return result;
}

// Adds int64 tensors of `type`'s shapes that count on from `next`, or hold `values`; false when a shape is symbolic.
bool add_args(EvalInput& eval_input, const Type& type, const std::vector<int64_t>& values) {
  size_t at = 0;
  for (const TensorType& tensor : flatten(type)) {
    const auto shape = tensor ? as_shape(tensor->shape) : std::nullopt;
    if (!shape) return false;
    NDArray array = NDArray::empty(*shape, DataType::int_(64));
    for (int64_t i = 0; i < array.num_elements(); ++i) set_element_int(array.tensor(), i, values.at(at++));
    eval_input.args.push_back(array);
    eval_input.arg_types.push_back(make_tensor_type(*shape, DataType::int_(64)));
  }
  return true;
}

}  // namespace

ValueInferenceFn value_by_moving(TypeRelationFn relation, EvalFn eval) {
  return [relation = std::move(relation),
          eval = std::move(eval)](const RelationInput& input) -> std::optional<std::vector<PrimExpr>> {
    const auto data = input.arg_value(0);
    if (!data) return std::nullopt;
    EvalInput eval_input{input.call, {}, {}, {}};
    std::vector<int64_t> positions;
    for (size_t i = 0; i < data->size(); ++i) positions.push_back(static_cast<int64_t>(i));
    if (!add_args(eval_input, input.arg_types[0], positions)) return std::nullopt;
    for (size_t i = 1; i < input.arg_types.size(); ++i) {
      const auto values = known_ints(input, i);
      if (!values || !add_args(eval_input, input.arg_types[i], *values)) return std::nullopt;
    }
    for (const TensorType& type : flatten(relation(input))) {
      const auto shape = type ? as_shape(type->shape) : std::nullopt;
      if (!shape) return std::nullopt;
      eval_input.out_types.push_back(make_tensor_type(*shape, DataType::int_(64)));
    }
    std::vector<PrimExpr> result;
    for (const NDArray& moved : eval(eval_input)) {
      for (const int64_t position : to_ints(moved)) result.push_back((*data)[static_cast<size_t>(position)]);
    }
    return result;
  };
}

OpBuilder& moving(OpBuilder& op, const TypeRelationFn& relation, const EvalFn& eval, FusionKind kind) {
  return op.relation(relation).fusion(kind).eval(eval).value(value_by_moving(relation, eval));
}

}  // namespace headrace::ops
