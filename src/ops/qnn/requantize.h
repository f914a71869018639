// Integers of one scale as integers of another. Relay's qnn.requantize, and what the ops that end with it share.
#pragma once

#include "ops/qnn/parameters.h"

namespace headrace::ops {

struct RequantizeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.RequantizeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<RequantizeAttrs>& f);
  int64_t axis = -1;
  std::string rounding = "None";       // as UPWARD
  std::string compute_dtype = "None";  // as int64
  DataType out_dtype = DataType::int_(8);
};

// Where halves go: up, or away from zero.
enum class Rounding : uint8_t { upward, to_nearest };
// Fixed point in 64 bits, or floats.
enum class RescaleIn : uint8_t { int64, float32, float64 };

struct Requantizing {
  Rounding rounding = Rounding::upward;
  RescaleIn arithmetic = RescaleIn::int64;
  DataType out_dtype = DataType::int_(32);
  int64_t axis = -1;  // axis of the data; scales and zero points of one dimension have a number for each of its indices
};

// A factor as multiplier * 2^(shift - 31), rounded to 31 bits: 2^30 <= multiplier < 2^31 and -31 <= shift <= 31.
// Smaller factors are 0. Of factors that relations refuse where scales are constants (2^31 or more, those that are not
// positive or not numbers), parts are lost, so that products with them say nothing.
struct FixedPoint {
  int32_t multiplier = 0, shift = 0;
};
FixedPoint fixed_point_of(double factor);
// Returns x * factor as an integer. The product is of 64 bits and the result of 32; past them they wrap.
int32_t multiply_fixed(int32_t x, FixedPoint factor, Rounding rounding);

// The scale and the zero point of integers.
struct TensorSteps {
  NDArray scale, zero_point;
};
struct ExprSteps {
  Parameter scale, zero_point;
};

// Returns (data - from.zero_point) * (from.scale / to.scale) + to.zero_point, cut to the range of out_dtype.
NDArray requantized(const NDArray& data, const TensorSteps& from, const TensorSteps& to, const Requantizing& how);
// Returns its expression in plain ops for data of that type.
Expr requantized(const Expr& data, const Type& type, const ExprSteps& from, const ExprSteps& to,
                 const Requantizing& how, const Span& span);
// Returns the expression of multiply_fixed for a factor that is a constant of the program.
Expr multiplied_fixed(const Expr& x, FixedPoint factor, const Span& span);

}  // namespace headrace::ops
