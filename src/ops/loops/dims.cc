#include "ops/loops/dims.h"

#include "arith/canonical.h"

#include <algorithm>

namespace headrace::ops {

std::optional<PrimExpr> unify_dims(const PrimExpr& a, const PrimExpr& b) {
  if (arith::is_unequal(a, b)) return std::nullopt;
  if (as_int(a)) return a;
  return as_int(b) || is_any(a) ? b : a;
}

std::optional<PrimExpr> broadcast_dims(const PrimExpr& a, const PrimExpr& b) {
  const auto x = as_int(a), y = as_int(b);
  if (x == 1) return b;
  if (y == 1) return a;
  if (x && y) return *x == *y ? std::optional(a) : std::nullopt;
  // The symbol can only be 1 or that size.
  if (x) return a;
  if (y) return b;
  return arith::is_equal(a, b) ? a : make_any();
}

Array<PrimExpr> broadcast_shapes(const RelationInput& input, const TensorType& a, const TensorType& b) {
  const size_t rank = std::max(a->shape.size(), b->shape.size());
  const PrimExpr one = make_int(1);
  auto dim_of = [&](const TensorType& type, size_t axis) {
    const size_t missing = rank - type->shape.size();
    return axis < missing ? one : type->shape[axis - missing];
  };
  Array<PrimExpr> result;
  for (size_t axis = 0; axis < rank; ++axis) {
    const PrimExpr x = dim_of(a, axis), y = dim_of(b, axis);
    const auto dim = broadcast_dims(x, y);
    if (!dim) {
      input.fail(fmt::format("shapes {} and {} cannot be broadcast: axis {} is {} and {}", show_dims(a->shape),
                             show_dims(b->shape), axis, to_string(x), to_string(y)));
    }
    result.push_back(*dim);
  }
  return result;
}

PrimExpr divided_dim(const RelationInput& input, const PrimExpr& dim, int64_t by, std::string_view what) {
  const auto exact = arith::divide_exactly(dim, make_int(by));
  if (!exact && as_int(dim)) input.fail(fmt::format("{} ({}) must be a multiple of {}", what, to_string(dim), by));
  return exact ? *exact : is_any(dim) ? make_any() : floor_div(dim, make_int(by));
}

PrimExpr result_dim(const RelationInput& input, const PrimExpr& dim) {
  const PrimExpr result = arith::simplify_dim(dim);
  if (!is_any(result)) return result;
  // A product or a sum of integers has no canonical form only because it overflows.
  std::vector<PrimExpr> pending{dim};
  while (!pending.empty()) {
    const PrimExpr e = std::move(pending.back());
    pending.pop_back();
    if (as_int(e)) continue;
    const auto* both = e.as<BinaryNode>();
    if (both == nullptr) return result;
    pending.push_back(both->a);
    pending.push_back(both->b);
  }
  input.fail(fmt::format("the result would have a dimension past any size: {}", to_string(dim)));
}

PrimExpr add_const(const PrimExpr& e, int64_t c) {
  const auto* sum = e.as<BinaryNode>();
  if (sum != nullptr && (sum->op == BinaryOp::add || sum->op == BinaryOp::sub)) {
    const auto right = as_int(sum->b);
    int64_t total = 0;
    const bool fits = right && !(sum->op == BinaryOp::add ? __builtin_add_overflow(c, *right, &total)
                                                          : __builtin_sub_overflow(c, *right, &total));
    if (fits) return sum->a + make_int(total, e->dtype);
  }
  return e + make_int(c, e->dtype);
}

std::string show_dims(const Array<PrimExpr>& dims) {
  std::string text = "(";
  for (size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ", ") + to_string(dims[i]);
  return text + ")";
}

std::optional<Dims> requested_shape(const RelationInput& input, const Shape& attribute, std::string_view name) {
  if (input.arg_types.size() == 1) return to_dims(attribute).to_vector();
  if (input.arg_types.size() != 2)
    input.fail(fmt::format("takes data and {}, got {} arguments", name, input.arg_types.size()));
  if (!attribute.empty()) input.fail(fmt::format("{} is given twice, as attribute and as argument", name));
  const TensorType type = input.tensor(1);
  if (!type) return std::nullopt;
  if (type->shape.size() != 1 || !(type->dtype.is_int() || type->dtype.is_uint()))
    input.fail(fmt::format("{} must be an integer tensor of one dimension, got {}", name, show(type)));
  if (auto value = input.arg_value(1)) return value;
  const auto length = as_int(type->shape[0]);
  if (!length) input.fail(fmt::format("the number of dimensions must be known: {} is {}", name, show(type)));
  return Dims(static_cast<size_t>(*length), make_any());
}

std::string unknown_size_fault(const TensorType& type) {
  if (std::none_of(type->shape.begin(), type->shape.end(), is_any)) return {};
  return fmt::format(
      "{} has {}, and compiled code, which plans its memory, has such tensors as results alone, of argwhere or of a "
      "slice to a computed end: run it in the interpreter, use an op with an upper bound (argwhere_bounded, unique), "
      "fix the shapes of the inputs if they are what is not known, or make an input that says a size a constant "
      "(--bind, in Python bound)",
      show(type), kUnknownSize);
}

}  // namespace headrace::ops
