#include "frontend/onnx/graph_outputs.h"

#include "frontend/onnx/file/field_reader.h"
#include "frontend/onnx/graph_inputs.h"
#include "ops/loops/dims.h"

namespace headrace::onnx {

namespace {

bool contradicts(const std::vector<Dim>& declared, const Array<PrimExpr>& computed) {
  if (declared.size() != computed.size()) return true;
  for (size_t i = 0; i < declared.size(); ++i) {
    const auto size = as_int(computed[i]);
    if (declared[i].value >= 0 && size && *size != declared[i].value) return true;
  }
  return false;
}

std::string show_declared(const ValueType& type) {
  const std::string shape = type.shape ? show_dims(*type.shape) : "";
  if (type.element_type == ElementType::kUndefined) return shape;
  return element_type_name(type.element_type) + (shape.empty() ? "" : " ") + shape;
}

}  // namespace

std::string output_contradiction(const ValueInfo& declared, const TensorType& computed) {
  const ValueType& type = declared.type;
  if (type.kind == ValueKind::kUnknown) return "";
  const bool is_tensor = type.kind == ValueKind::kTensor;
  const bool other_dtype = is_tensor && type.element_type != ElementType::kUndefined &&
                           element_type_name(type.element_type) != computed->dtype.to_string();
  const bool other_shape = is_tensor && type.shape && contradicts(*type.shape, computed->shape);
  if (is_tensor && !other_dtype && !other_shape) return "";
  return fmt::format(
      "output {} is declared {}, but the model computes {}: the declaration is wrong, or a node before it, or the "
      "shape "
      "of an input",
      printable(declared.name), is_tensor ? show_declared(type) : "to be not a tensor",
      fmt::format("{} {}", computed->dtype, ops::show_dims(computed->shape)));
}

}  // namespace headrace::onnx
