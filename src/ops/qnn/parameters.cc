#include "ops/qnn/parameters.h"

#include <cmath>

#include "ops/loops/dims.h"
#include "ops/loops/element.h"
#include "ops/qnn/quantize.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/elementwise.h"
#include "ops/tensor/shape.h"

namespace headrace::ops {

bool check_parameter(const RelationInput& input, size_t i, DataType dtype, const PrimExpr& size) {
  const std::string& name = input.call.as_op()->arguments[i].name;
  const TensorType type = input.tensor(i);
  if (!type) return false;
  if (type->dtype != dtype)
    input.fail(fmt::format("{} must have dtype {}, got {}", name, dtype.to_string(), show(type)));
  if (type->shape.empty()) return true;
  if (!size.defined() || type->shape.size() != 1 || !unify_dims(size, type->shape[0]))
    input.fail(fmt::format("{} must be a scalar{}, got {}", name,
                           size.defined() ? fmt::format(" or have {} numbers", to_string(size)) : "", show(type)));
  return true;
}

bool check_scale(const RelationInput& input, size_t i, const PrimExpr& size) {
  if (!check_parameter(input, i, DataType::float_(32), size)) return false;
  check_positive(input, input.call.as_op()->arguments[i].name, input.arg_constant(i));
  return true;
}

void check_positive(const RelationInput& input, std::string_view name, const NDArray& scale) {
  for (int64_t k = 0; scale && k < scale.num_elements(); ++k) {
    const double value = element_as_double(scale.tensor(), k);
    if (!(value > 0) || std::isinf(value))
      input.fail(fmt::format("{} must be positive and finite, got {}", name, value));
  }
}

void check_factor(const RelationInput& input, const std::vector<NDArray>& from, const NDArray& to) {
  if (!to || std::any_of(from.begin(), from.end(), [](const NDArray& scale) { return !scale; })) return;
  int64_t count = 1;
  for (const NDArray& scale : from) count = std::max(count, scale.num_elements());
  for (int64_t k = 0; k < count; ++k) {
    float product = 1;
    for (const NDArray& scale : from)
      product *= static_cast<float>(element_as_double(scale.tensor(), scale.num_elements() > 1 ? k : 0));
    const double factor = static_cast<double>(product) / element_as_double(to.tensor(), 0);
    if (factor >= 0x1p31) input.fail(fmt::format("the scales give a factor of {}, expected one below 2^31", factor));
  }
}

bool check_zero_point(const RelationInput& input, size_t i, const PrimExpr& size) {
  return check_parameter(input, i, kQuantizedSum, size);
}

TensorType byte_argument(const RelationInput& input, size_t i) {
  const TensorType type = input.tensor(i);
  if (type && (!is_integer(type) || type->dtype.bits() != 8))
    input.fail(
        fmt::format("{} must have dtype int8 or uint8, got {}", input.call.as_op()->arguments[i].name, show(type)));
  return type;
}

Type relate_as(const OpHandle& op, const RelationInput& input, const std::vector<Type>& types) {
  return (*op.node().find(relay::kTypeRelation))({input.call, types, input.arg_value, input.arg_constant});
}

NDArray eval_as(const OpHandle& op, const EvalInput& input, std::vector<NDArray> args, DataType out) {
  std::vector<TensorType> types;
  for (const NDArray& arg : args) types.push_back(make_tensor_type(arg.shape(), arg.dtype()));
  const TensorType result = make_tensor_type(input.out_types[0]->shape, out);
  return (*op.node().find(kEval))({input.call, std::move(args), std::move(types), {result}, input.work})[0];
}

NDArray less_zero_point(const NDArray& data, const NDArray& zero_point, int64_t axis) {
  const NDArray out = NDArray::empty(data.shape(), kQuantizedSum);
  const auto data_at = reader_as<int32_t>(data.dtype());
  const Elements<int32_t> zero(zero_point), y(out);
  for_each_channel(data.shape(), axis, !zero_point.shape().empty(), [&](int64_t i, int64_t channel) {
    y.set(i, wrapping_add(data_at(data, i), wrapping_mul(zero[channel], -1)));
  });
  return out;
}

NDArray saturated(const NDArray& sums, DataType dtype) {
  const NDArray out = NDArray::empty(sums.shape(), dtype);
  const Elements<int32_t> x(sums);
  dispatch_int(dtype, [&]<typename T>() {
    const Elements<T> y(out);
    for (int64_t i = 0; i < out.num_elements(); ++i)
      y.set(i, static_cast<T>(std::clamp<int64_t>(x[i], least_integer(dtype), most_integer(dtype))));
  });
  return out;
}

Parameter parameter(const relay::CallNode& call, const Array<Type>& types, size_t i) {
  return {call.args[i], rank_of(types[i]) > 0};
}

Expr along(const Parameter& parameter, size_t rank, int64_t axis, const Span& span) {
  const auto trailing = static_cast<int64_t>(parameter.is_vector ? rank - normal_axis(axis, rank) - 1 : 0);
  return trailing == 0 ? parameter.value : expand_dims(parameter.value, 1, trailing, span);
}

bool is_zero(const Expr& expr) {
  const auto* constant = expr.as<relay::ConstantNode>();
  if (constant == nullptr) return false;
  const NDArray data = constant->data.to_dense();
  for (int64_t i = 0; i < data.num_elements(); ++i) {
    if (element_as_double(data.tensor(), i) != 0) return false;
  }
  return true;
}

Expr less_zero_point(const Expr& data, const Type& type, const Parameter& zero_point, int64_t axis, const Span& span) {
  const Expr wide = dtype_of(type) == kQuantizedSum ? data : cast(data, kQuantizedSum, span);
  return is_zero(zero_point.value) ? wide : subtract(wide, along(zero_point, rank_of(type), axis, span), span);
}

Expr saturated(const Expr& sums, DataType dtype, const Span& span) {
  if (dtype == kQuantizedSum) return sums;
  const Expr cut =
      clip(sums, static_cast<double>(least_integer(dtype)), static_cast<double>(most_integer(dtype)), span);
  return cast(cut, dtype, span);
}

}  // namespace headrace::ops
