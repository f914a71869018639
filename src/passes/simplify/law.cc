#include "passes/simplify/law.h"

#include "ops/op_handles.h"
#include "ops/tensor/creation.h"
#include "relay/infer/type_match.h"

namespace headrace::passes::simplify {

using relay::ConstantNode;

bool Site::has_type_of(const Expr& expr) const { return relay::same_type(type, expr->checked_type()); }

namespace {

// `type` has one element along the axis that is `from_end` from its last, or no such axis.
bool is_one_along(const Type& type, size_t from_end) {
  const auto* tensor = type.as<TensorTypeNode>();
  if (tensor == nullptr) return false;
  const size_t rank = tensor->shape.size();
  return from_end >= rank || as_int(tensor->shape[rank - 1 - from_end]) == 1;
}

}  // namespace

Expr Site::operand(size_t i) const {
  const Expr expr = arg(i);
  const auto* tensor = type.as<TensorTypeNode>();
  if (tensor == nullptr || !has_type_of(expr)) return {};
  const size_t rank = tensor->shape.size();
  for (size_t axis = 0; axis < rank; ++axis) {
    if (!is_any(tensor->shape[axis])) continue;
    const bool is_kept = std::all_of(call.args.begin(), call.args.end(), [&](const Expr& other) {
      return other == expr || is_one_along(other->checked_type(), rank - 1 - axis);
    });
    if (!is_kept) return {};
  }
  return expr;
}

std::optional<Shape> Site::shape() const { return static_shape(type); }

DataType Site::dtype() const {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor == nullptr ? DataType() : tensor->dtype;
}

std::optional<Shape> static_shape(const Type& type) {
  const auto* tensor = type.as<TensorTypeNode>();
  return tensor == nullptr ? std::nullopt : as_shape(tensor->shape);
}

bool all_elements_are(const Expr& expr, double value) {
  // Large ones are not constants (FoldConstant).
  if (relay::is_call(expr, op::kZeros)) return value == 0;
  if (relay::is_call(expr, op::kOnes)) return value == 1;
  const auto* full = relay::call_of(expr, op::kFull);
  const auto* constant = full == nullptr ? expr.as<ConstantNode>() : full->args[0].as<ConstantNode>();
  if (constant == nullptr) return false;
  if (full != nullptr && constant->data.dtype() != dtype_of(expr)) return false;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_double(data.tensor(), i) != value) return false;
  }
  return true;
}

std::optional<double> scalar_value(const Expr& expr) {
  const auto* constant = expr.as<ConstantNode>();
  if (constant == nullptr || !constant->data.shape().empty()) return std::nullopt;
  return element_as_double(constant->data.to_dense().tensor(), 0);
}

bool Law::holds_for(const Site& site, int32_t opt_level) const {
  if (numerics == LawNumerics::rounding && opt_level < kRoundingLevel && site.dtype().is_float()) return false;
  if (shape == LawShape::known && !site.shape()) return false;
  const DataType dtype = dtypes == LawDtypes::all ? DataType() : dtype_of(site.arg(0));
  switch (dtypes) {
    case LawDtypes::all:
      return true;
    case LawDtypes::floats:
      return dtype.is_float();
    case LawDtypes::exact:
      return is_exact(dtype);
    case LawDtypes::negatable:
      return dtype.is_float() || dtype.is_int();
  }
  return false;
}

bool is_exact(DataType dtype) { return dtype.is_int() || dtype.is_uint() || dtype.is_bool(); }

Expr filled(const Site& site, double value) {
  const Shape shape = *site.shape();
  const Expr scalar = relay::make_constant(relay::make_scalar(value, site.dtype())->data, site.span());
  return shape.empty() ? scalar : ops::full(scalar, shape, site.dtype(), site.span());
}

}  // namespace headrace::passes::simplify
