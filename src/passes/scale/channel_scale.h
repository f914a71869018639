// Multiplications along one axis, which the FoldScaleAxis passes move into weights.
#pragma once

#include <unordered_map>

#include "pass/pass.h"
#include "passes/rewrite/taken_constants.h"
#include "passes/simplify/joined_constants.h"
#include "relay/expr.h"

namespace headrace::passes {

// Factors along one axis of a tensor of `rank` dimensions.
struct Scale {
  Expr factors;    // any expression, of a shape that varies along the axis at most
  NDArray values;  // factors that are a constant, [C] or a scalar; else null
  Shape shape;     // shape of the factors
  DataType dtype;
  size_t axis = 0;  // `rank`: one factor for all
  size_t rank = 0;

  bool is_uniform() const { return axis == rank; }
  int64_t count() const { return num_elements(shape); }
  // Returns whether every factor is known to be positive and finite.
  bool is_positive() const;
  // Returns whether every factor is known, finite and not 0.
  bool is_invertible() const;
  // Returns the factor for a tensor of `of_rank` dimensions along axis `at`: a constant when the factors are constant,
  // else the factors reshaped.
  Expr along(size_t at, size_t of_rank) const;
};

// Reads `factors`, of that type, as factors of a tensor of `rank` dimensions; nothing where they vary along several
// axes.
std::optional<Scale> read_scale(const Expr& factors, const TensorTypeNode* type, size_t rank);

// Returns the axis along which a tensor varies when it is broadcast to `rank` dimensions; `rank` for a single value.
// Nothing when it varies along several.
std::optional<size_t> varying_axis(const Shape& shape, size_t rank);

// Returns the dense data of a constant; null for any other expression.
NDArray constant_data(const Expr& expr);

// The permissions of a pass.
struct ScaleRules {
  const pass::PassContext& context;
  bool with_variables = true;             // multiply weights, and what is added, when the program runs
  const TakenConstants* taken = nullptr;  // the constants for which weights stand; null: none does

  // Returns weights * b, a constant where both are. Null when the product overflows its dtype, or when the rules do not
  // allow a product at run time.
  Expr multiplied(const Expr& weights, const Expr& b) const;
  // Returns a / b in the same way, where b is constant and has no 0.
  Expr divided(const Expr& a, const Expr& b) const;
};

// The constants that are added along the way of a scale. A scale must not move past two of opposite signs: (x * s + c)
// - c rounds x * s to the spacing of c, where (x + c / s) - c / s would round x to another one. The signs of operands
// that are not constants are not known, and taken for no obstacle.
class AddedConstants {
 public:
  enum class Direction : uint8_t { to_operand, to_result };

  // Goes past a call of add, subtract or nn.bias_add whose operand `data` is on the way, in that direction. Returns
  // false where its constant opposes one before; any other call is not an obstacle.
  bool pass(const relay::CallNode& call, size_t data, Direction direction);

 private:
  simplify::Signs signs_;
  bool is_negated_ = false;
};

// The most calls that one scale passes. A scale nested deeper stays where it is, so that the time stays linear in the
// program.
inline constexpr size_t kMostScaledCalls = 64;

// The channel axis of an op with weights: its axis in the data, and in weights of `weight_rank` dimensions.
struct WeightAxis {
  size_t data_axis = 0;
  size_t weight_axis = 0;
  size_t weight_rank = 0;
};
// Returns whether scaling data along `where.data_axis` is the same as scaling the weights of that type instead.
bool is_along(const Scale& scale, const WeightAxis& where, const TensorTypeNode* weights);

// Returns whether op(x * s) == op(x) * s for the call, x being its first argument: see ops::kCommutingFactors. `scale`
// lies along an axis of x that the result has too.
bool commutes(const relay::CallNode& call, const Scale& scale);

// Returns whether the call is nn.conv1d, nn.conv2d, nn.conv3d or a transpose of them, in layouts without parts.
bool is_plain_conv(const relay::CallNode& call);

}  // namespace headrace::passes
