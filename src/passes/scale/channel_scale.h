// Multiplications by constants along one axis: what the FoldScaleAxis passes move into weights.
#pragma once

#include <unordered_map>

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

// How often each node is read, kept while nodes are rebuilt: where one read is all, its operand may change for it.
class UseCounts {
 public:
  explicit UseCounts(const Expr& body);
  bool is_single(const Expr& expr) const;
  // `after` stands where `before` stood.
  void take_over(const Expr& before, const Expr& after);
  // `expr` is new, and read once.
  void add_single(const Expr& expr) { counts_[expr.object()] = 1; }

 private:
  std::unordered_map<const Object*, int> counts_;
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
