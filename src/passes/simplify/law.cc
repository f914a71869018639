#include "passes/simplify/law.h"

#include "ops/tensor/creation.h"
#include "relay/infer/type_match.h"

namespace headrace::passes::simplify {

using relay::CallNode;
using relay::ConstantNode;

bool Site::has_type_of(const Expr& expr) const { return relay::same_type(type, expr->checked_type()); }

std::optional<Shape> Site::shape() const { return static_shape(type); }

DataType Site::dtype() const {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor == nullptr ? DataType() : tensor->dtype;
}

std::optional<Shape> static_shape(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
}

const CallNode* as_call_of(const Expr& expr, std::string_view op) {
  const auto* call = expr.as<CallNode>();
  return call != nullptr && call->as_op() != nullptr && call->as_op()->name == op ? call : nullptr;
}

bool all_elements_are(const Expr& expr, double value) {
  // Large ones are no constants (FoldConstant).
  if (as_call_of(expr, "zeros") != nullptr) return value == 0;
  if (as_call_of(expr, "ones") != nullptr) return value == 1;
  const auto* full = as_call_of(expr, "full");
  const auto* constant = full == nullptr ? expr.as<ConstantNode>() : full->args[0].as<ConstantNode>();
  if (constant == nullptr) return false;
  if (full != nullptr && constant->data.dtype() != expr->checked_type().as<TensorTypeNode>()->dtype) return false;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_double(data.tensor(), i) != value) return false;
  }
  return true;
}

DataType dtype_of(const Expr& expr) {
  const auto* type = expr->checked_type().as<TensorTypeNode>();
  return type == nullptr ? DataType() : type->dtype;
}

std::optional<double> scalar_value(const Expr& expr) {
  const auto* constant = expr.as<ConstantNode>();
  if (constant == nullptr || !constant->data.shape().empty()) return std::nullopt;
  return element_as_double(constant->data.to_dense().tensor(), 0);
}

bool is_exact(DataType dtype) { return dtype.is_int() || dtype.is_uint() || dtype.is_bool(); }

Expr filled(const Site& site, double value) {
  const auto shape = site.shape();
  if (!shape) return {};
  const Expr scalar = relay::make_constant(relay::make_scalar(value, site.dtype())->data, site.span());
  return shape->empty() ? scalar : ops::full(scalar, *shape, site.dtype(), site.span());
}

}  // namespace headrace::passes::simplify
