// Multiplications by constants along one axis: what the FoldScaleAxis passes move into weights.
#pragma once

#include "pass/pass.h"
#include "relay/expr.h"

namespace headrace::passes {

// Factors along one axis of a tensor of `rank` dimensions.
struct Scale {
  NDArray factors;  // [C], or a scalar: the same for all
  size_t axis = 0;
  size_t rank = 0;

  bool is_uniform() const { return factors.shape().empty(); }
  // Every factor is, and none is infinite.
  bool is_positive() const;
  // The constant that multiplies a tensor of `of_rank` dimensions along `at`.
  Expr along(size_t at, size_t of_rank) const;
};

// The dense data of a constant; null for any other expression.
NDArray constant_data(const Expr& expr);

// The axis along which a constant varies when it is broadcast to `rank` dimensions; `rank` when it is one value.
// Nothing when it varies along several.
std::optional<size_t> varying_axis(const Shape& shape, size_t rank);

// A constant as factors of a tensor of `rank` dimensions.
std::optional<Scale> read_scale(const NDArray& factors, size_t rank);

// The product of two constants; null when it is past what the dtype holds.
Expr multiplied(const Expr& a, const Expr& b, const pass::PassContext& context);

}  // namespace headrace::passes
