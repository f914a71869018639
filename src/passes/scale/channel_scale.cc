#include "passes/scale/channel_scale.h"

#include <cmath>

#include "ops/tensor/broadcast.h"
#include "passes/fold/fold_constant.h"
#include "passes/simplify/joined_constants.h"
#include "relay/infer/infer_type.h"
#include "relay/visit.h"

namespace headrace::passes {

bool Scale::is_positive() const {
  for (int64_t i = 0; i < factors.num_elements(); ++i) {
    const double value = element_as_double(factors.tensor(), i);
    if (!(value > 0) || std::isinf(value)) return false;
  }
  return true;
}

Expr Scale::along(size_t at, size_t of_rank) const {
  if (is_uniform()) return relay::make_constant(factors);
  Shape shape(of_rank - at, 1);
  shape[0] = factors.num_elements();
  return relay::make_constant(factors.reshaped(shape));
}

UseCounts::UseCounts(const Expr& body) {
  counts_[body.object()] = 1;
  relay::post_order(body, [&](const Expr& e) {
    for (const Expr& child : relay::children_of(e)) ++counts_[child.object()];
  });
}

bool UseCounts::is_single(const Expr& expr) const {
  const auto count = counts_.find(expr.object());
  return count != counts_.end() && count->second == 1;
}

void UseCounts::take_over(const Expr& before, const Expr& after) {
  if (after != before) counts_[after.object()] = counts_.at(before.object());
}

NDArray constant_data(const Expr& expr) {
  const auto* constant = expr.as<relay::ConstantNode>();
  return constant == nullptr ? NDArray() : constant->data.to_dense();
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

std::optional<Scale> read_scale(const NDArray& factors, size_t rank) {
  const auto axis = varying_axis(factors.shape(), rank);
  if (!axis || factors.num_elements() == 0) return std::nullopt;
  const bool uniform = *axis == rank;
  return Scale{factors.reshaped(uniform ? Shape{} : Shape{factors.num_elements()}), uniform ? 0 : *axis, rank};
}

Expr multiplied(const Expr& a, const Expr& b, const pass::PassContext& context) {
  Expr product = fold_constant(relay::infer_type(ops::multiply(a, b, a->span)), context);
  return simplify::is_good_weight(constant_data(a), constant_data(b), constant_data(product)) ? product : Expr();
}

}  // namespace headrace::passes
