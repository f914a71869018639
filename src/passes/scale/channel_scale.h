// Multiplications along one axis: what the FoldScaleAxis passes move into weights.
#pragma once

#include <unordered_map>

#include "pass/pass.h"
#include "passes/simplify/joined_constants.h"
#include "relay/expr.h"

namespace headrace::passes {

// Factors along one axis of a tensor of `rank` dimensions.
struct Scale {
  Expr factors;    // any expression, of a shape that varies along the axis at most
  NDArray values;  // of factors that are a constant, [C] or a scalar; else null
  Shape shape;     // of the factors
  DataType dtype;
  size_t axis = 0;  // `rank`: one factor for all
  size_t rank = 0;

  bool is_uniform() const { return axis == rank; }
  int64_t count() const { return num_elements(shape); }
  // Every factor is known to be, and none is infinite.
  bool is_positive() const;
  // Every factor is known, finite and not 0.
  bool is_invertible() const;
  // What multiplies a tensor of `of_rank` dimensions along `at`: a constant for a constant, else the factors in the
  // shape that it takes.
  Expr along(size_t at, size_t of_rank) const;
};

// `factors`, of that type, as factors of a tensor of `rank` dimensions; nothing where they vary along several axes.
std::optional<Scale> read_scale(const Expr& factors, const TensorTypeNode* type, size_t rank);

// The axis along which a tensor varies when it is broadcast to `rank` dimensions; `rank` when it is one value. Nothing
// when it varies along several.
std::optional<size_t> varying_axis(const Shape& shape, size_t rank);

// The type of a tensor; null for what has no type yet, and for what is no tensor.
const TensorTypeNode* tensor_type_of(const Expr& expr);

// The dense data of a constant; null for any other expression.
NDArray constant_data(const Expr& expr);

// What the passes may do.
struct ScaleRules {
  const pass::PassContext& context;
  bool with_variables = true;  // multiply weights, and what is added, when the program runs

  // A product, constant where both are; null when it is past what the dtype holds, or may not be made.
  Expr multiplied(const Expr& a, const Expr& b) const;
  // The same of a / b, b being constant and nowhere 0.
  Expr divided(const Expr& a, const Expr& b) const;
};

// The constants that are added along the way of a scale. A scale must not move past two of opposite signs: (x * s + c)
// - c rounds x * s to the spacing of c, where (x + c / s) - c / s would round x to another one. The signs of operands
// that are no constants are not known, and taken for no obstacle.
class AddedConstants {
 public:
  enum class Direction : uint8_t { to_operand, to_result };

  // Goes past a call of add, subtract or nn.bias_add whose operand `data` is on the way, in that direction. Returns
  // false where its constant opposes one before; any other call is no obstacle.
  bool pass(const relay::CallNode& call, size_t data, Direction direction);

 private:
  simplify::Signs signs_;
  bool is_negated_ = false;
};

// The most calls that one scale passes: what is nested deeper keeps it, so that the time stays linear in the program.
inline constexpr size_t kMostScaledCalls = 64;

// Where an op with weights reads or gives channels: the axis in the data, and in the weights of so many dimensions.
struct WeightAxis {
  size_t data_axis = 0;
  size_t weight_axis = 0;
  size_t weight_rank = 0;
};
// Whether the scale of such data multiplies weights of that type instead.
bool is_along(const Scale& scale, const WeightAxis& where, const TensorTypeNode* weights);

// nn.conv1d, nn.conv2d, nn.conv3d and their transposes, in layouts without parts.
bool is_plain_conv(const relay::CallNode& call);

}  // namespace headrace::passes
