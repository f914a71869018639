#include "passes/gradient/rule_tools.h"

#include "arith/canonical.h"
#include "ops/loops/dims.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/creation.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/reduce.h"
#include "ops/tensor/repeat.h"
#include "ops/tensor/shape.h"

namespace headrace::passes::gradient_rules {

const TensorTypeNode& tensor_of(const Expr& expr) {
  const auto* tensor = expr->checked_type().as<TensorTypeNode>();
  if (tensor == nullptr)
    throw_at(expr->span, "gradient", fmt::format("a gradient needs a tensor, got {}", to_string(expr->checked_type())));
  return *tensor;
}

static void throw_not_static(const Expr& expr) {
  throw_at(expr->span, "gradient",
           fmt::format("a gradient here needs tensors of static shape, got {}", to_string(expr->checked_type())));
}

int64_t static_dim_of(const Expr& expr, size_t axis) {
  const auto dim = as_int(tensor_of(expr).shape[axis]);
  if (!dim) throw_not_static(expr);
  return *dim;
}

Shape static_shape_of(const Expr& expr) {
  const auto shape = known_shape_of(expr);
  if (!shape) throw_not_static(expr);
  return *shape;
}

Expr scalar(double value, const GradientSite& s) { return relay::make_scalar(value, tensor_of(s.arg(0)).dtype); }
Expr negative(const Expr& x) { return ops::unary(op::kNegative, x); }
Expr square(const Expr& x) { return ops::multiply(x, x); }

Expr zeros_as(const Expr& like) {
  const auto shape = known_shape_of(like);
  return shape ? ops::zeros(*shape, tensor_of(like).dtype) : ops::unary(op::kZerosLike, like);
}
Expr ones_as(const Expr& like) {
  const auto shape = known_shape_of(like);
  return shape ? ops::ones(*shape, tensor_of(like).dtype) : ops::unary(op::kOnesLike, like);
}
Expr reshaped_as(const Expr& data, const Expr& like) {
  const auto shape = known_shape_of(like);
  return shape ? ops::reshape(data, *shape, num_elements(*shape) == 0) : ops::reshape_like(data, like);
}
Expr broadcast_as(const Expr& data, const Expr& like) {
  const auto shape = known_shape_of(like);
  return shape ? ops::broadcast_to(data, *shape) : ops::broadcast_to_like(data, like);
}

// Returns the axes of `from` that broadcasting added to, or repeated in, `to`; nothing where a symbol leaves that open.
static std::optional<Shape> repeated_axes(const Array<PrimExpr>& from, const Array<PrimExpr>& to) {
  const size_t added = from.size() - to.size();
  Shape axes;
  for (size_t i = 0; i < from.size(); ++i) {
    const bool is_kept = i >= added && arith::is_equal(from[i], to[i - added]);
    if (is_kept) continue;
    if (i >= added && as_int(to[i - added]) != 1) return std::nullopt;
    axes.push_back(static_cast<int64_t>(i));
  }
  return axes;
}

Expr summed_to(const Expr& gradient, const Expr& result, const Expr& operand) {
  const Array<PrimExpr>& from = tensor_of(result).shape;
  const Array<PrimExpr>& to = tensor_of(operand).shape;
  const auto axes = repeated_axes(from, to);
  if (!axes) return ops::binary(op::kCollapseSumLike, gradient, operand);
  if (axes->empty()) return gradient;
  return reshaped_as(ops::reduce(op::kSum, gradient, *axes, true), operand);
}

Gradients binary(const GradientSite& s, const Expr& by_first, const Expr& by_second) {
  return {summed_to(by_first, s.result, s.arg(0)), summed_to(by_second, s.result, s.arg(1))};
}

Expr operand_gradient(const GradientSite& s) {
  const DataType dtype = tensor_of(s.arg(0)).dtype;
  return dtype == tensor_of(s.result).dtype ? s.gradient : ops::cast(s.gradient, dtype);
}

Expr masked(const Expr& condition, const GradientSite& s) {
  return ops::where(condition, s.gradient, zeros_as(s.result));
}

Expr along_axis(const Expr& vector, size_t axis, size_t rank) {
  const auto behind = static_cast<int64_t>(rank - 1 - axis);
  return behind == 0 ? vector : ops::expand_dims(vector, 1, behind);
}
Expr summed_but(const Expr& tensor, size_t axis) {
  return ops::reduce(op::kSum, tensor, Shape{static_cast<int64_t>(axis)}, false, true);
}

Expr elements_each(const Expr& whole, const Expr& part, const GradientSite& s) {
  const auto of_whole = known_shape_of(whole), of_part = known_shape_of(part);
  if (of_whole && of_part)
    return scalar(static_cast<double>(num_elements(*of_whole)) /
                      static_cast<double>(std::max<int64_t>(1, num_elements(*of_part))),
                  s);
  const auto size = [&](const Expr& e) {
    return ops::cast(ops::ndarray_size(e, DataType::int_(64)), tensor_of(s.arg(0)).dtype);
  };
  return ops::divide(size(whole), size(part));
}

Expr counted(int64_t count) {
  const auto number = [](int64_t value) { return relay::make_scalar(static_cast<double>(value), DataType::int_(64)); };
  return ops::arange(number(0), number(count), number(1), DataType::int_(64));
}

Shape moved_axis(size_t rank, size_t from, size_t to) {
  Shape axes;
  for (size_t i = 0; i < rank; ++i) {
    if (i != from) axes.push_back(static_cast<int64_t>(i));
  }
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(to), static_cast<int64_t>(from));
  return axes;
}

Expr ordered(const Expr& tensor, const Shape& axes) {
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] != static_cast<int64_t>(i)) return ops::transpose(tensor, axes);
  }
  return tensor;
}

const Array<Type>& item_types(const GradientSite& s) { return s.arg(0)->checked_type().as<TupleTypeNode>()->items; }

void refuse(const GradientSite& s, std::string_view what) {
  const std::string& name = s.call.as_op()->name;
  throw_at(s.call.span, name, fmt::format("{}: {}", name, what));
}

}  // namespace headrace::passes::gradient_rules
