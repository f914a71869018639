#include "passes/scale/channel_scale.h"

#include <algorithm>
#include <cmath>

#include "ops/nn/conv.h"
#include "ops/op_facts.h"
#include "ops/op_handles.h"
#include "ops/tensor/broadcast.h"
#include "ops/tensor/shape.h"
#include "passes/fold/fold_constant.h"
#include "passes/simplify/joined_constants.h"
#include "relay/infer/infer_type.h"
#include "relay/match.h"

namespace headrace::passes {

namespace {

// Returns whether the scale is known, and `test` holds of each factor.
template <typename Test>
bool all_factors(const Scale& scale, Test&& test) {
  if (!scale.values) return false;
  for (int64_t i = 0; i < scale.values.num_elements(); ++i) {
    if (!test(element_as_double(scale.values.tensor(), i))) return false;
  }
  return true;
}

}  // namespace

bool Scale::is_positive() const {
  return all_factors(*this, [](double value) { return value > 0 && std::isfinite(value); });
}

bool Scale::is_invertible() const {
  return all_factors(*this, [](double value) { return value != 0 && std::isfinite(value); });
}

Expr Scale::along(size_t at, size_t of_rank) const {
  Shape wanted(is_uniform() ? 0 : of_rank - at, 1);
  if (!is_uniform()) wanted[0] = count();
  if (values) return relay::make_constant(values.reshaped(wanted));
  if (is_uniform()) {
    return shape.size() <= of_rank ? factors : Expr(ops::reshape(factors, Shape{1}, false, factors->span));
  }
  if (shape == wanted) return factors;
  const bool is_longer = wanted.size() > shape.size() && std::equal(shape.begin(), shape.end(), wanted.begin());
  if (!is_longer) return ops::reshape(factors, wanted, false, factors->span);
  const auto rank_now = static_cast<int64_t>(shape.size());
  return ops::expand_dims(factors, rank_now, static_cast<int64_t>(wanted.size()) - rank_now, factors->span);
}

std::optional<Scale> read_scale(const Expr& factors, const TensorTypeNode* type, size_t rank) {
  const auto shape = type == nullptr ? std::nullopt : as_shape(type->shape);
  const auto axis = shape ? varying_axis(*shape, rank) : std::nullopt;
  if (!axis || num_elements(*shape) == 0) return std::nullopt;
  Scale scale{factors, constant_data(factors), *shape, type->dtype, *axis, rank};
  if (scale.values) scale.values = scale.values.reshaped(scale.is_uniform() ? Shape{} : Shape{scale.count()});
  return scale;
}

std::optional<size_t> varying_axis(const Shape& shape, size_t rank) {
  size_t axis = rank;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (shape[i] == 1) continue;
    if (axis != rank || shape.size() > rank) return std::nullopt;
    axis = rank - shape.size() + i;
  }
  return axis;
}

NDArray constant_data(const Expr& expr) {
  const auto* constant = expr.as<relay::ConstantNode>();
  return constant == nullptr ? NDArray() : constant->data.to_dense();
}

Expr ScaleRules::multiplied(const Expr& weights, const Expr& b) const {
  const Expr a = taken == nullptr ? weights : taken->filled(weights);
  const NDArray x = constant_data(a), y = constant_data(b);
  if (!x || !y) return with_variables ? Expr(ops::multiply(a, b, a->span)) : Expr();
  const Expr product = fold_constant(relay::infer_type(ops::multiply(a, b, a->span)), context);
  return simplify::is_good_weight(x, y, constant_data(product)) ? product : Expr();
}

Expr ScaleRules::divided(const Expr& a, const Expr& b) const {
  if (!constant_data(a)) return with_variables ? Expr(ops::divide(a, b, a->span)) : Expr();
  const auto folded = [&](const Expr& x) {
    return fold_constant(relay::infer_type(ops::divide(x, b, a->span)), context);
  };
  // Digits lost in 1 / b may be lost in a / b, too.
  const NDArray inverse = constant_data(folded(relay::make_scalar(1, constant_data(b).dtype())));
  const Expr quotient = folded(a);
  const bool is_good =
      simplify::is_good_sum(inverse) && simplify::is_good_product(constant_data(a), inverse, constant_data(quotient));
  return is_good ? quotient : Expr();
}

bool AddedConstants::pass(const relay::CallNode& call, size_t data, Direction direction) {
  if (!relay::is_call_of_any(call, {&op::kAdd, &op::kSubtract, &op::kBiasAdd})) return true;
  const bool subtracts = relay::is_call(call, op::kSubtract);
  const bool negates = subtracts && data == 1;
  if (negates && direction == Direction::to_result) is_negated_ = !is_negated_;
  if (const NDArray constant = constant_data(call.args[1 - data])) {
    const bool is_subtracted = subtracts && data == 0;
    const simplify::Signs signs = simplify::signs_of(constant);
    const simplify::Signs added = is_subtracted != is_negated_ ? signs.negated() : signs;
    if (signs_.oppose(added)) return false;
    signs_ = signs_ | added;
  }
  if (negates && direction == Direction::to_operand) is_negated_ = !is_negated_;
  return true;
}

bool is_along(const Scale& scale, const WeightAxis& where, const TensorTypeNode* weights) {
  if (weights == nullptr || weights->shape.size() != where.weight_rank || weights->dtype != scale.dtype) return false;
  // One channel that is broadcast to several is not along the weights.
  return scale.is_uniform() ||
         (scale.axis == where.data_axis && is_int(weights->shape[where.weight_axis], scale.count()));
}

bool commutes(const relay::CallNode& call, const Scale& scale) {
  const ops::CommutingFactorsFn* factors = call.as_op()->find(ops::kCommutingFactors);
  if (factors == nullptr || call.args.empty() || relay::is_stateful(*call.as_op())) return false;
  switch ((*factors)(call, scale.is_uniform() ? std::nullopt : std::optional(scale.axis))) {
    case ops::CommutingFactors::none:
      return false;
    case ops::CommutingFactors::positive:
      return scale.is_positive();
    case ops::CommutingFactors::any:
      return true;
  }
  return false;
}

bool is_plain_conv(const relay::CallNode& call) {
  if (!call.attrs.is<ops::ConvAttrs>() || relay::is_call(call, op::kConv2DBackwardWeight)) return false;
  const ops::ConvForm form = ops::conv_form(call.attrs_as<ops::ConvAttrs>());
  const size_t rank = form.letters.size();
  return form.data_layout.size() == rank && form.kernel_layout.size() == rank && form.out_layout.size() == rank;
}

}  // namespace headrace::passes
