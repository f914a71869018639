// Helpers of the random searches that hold passes to the numeric policy (docs/numerics.md): numbers of any magnitude
// and sign, in every float dtype.
#pragma once

#include <cmath>

#include "kit/random.h"
#include "passes/tests/pass_testing.h"

namespace headrace::passes {

// The numbers of a float dtype: half a unit in the last place of 1, the smallest of full precision, the largest.
struct FloatRange {
  DataType dtype;
  double rounding, smallest_normal, largest;
  int most_exponent;  // drawn magnitudes go from 2^-n to a little beyond 2^n

  double smallest() const { return smallest_normal * 2 * rounding; }
};

inline const FloatRange kFloatRanges[] = {{DataType::float_(16), 0x1p-11, 0x1p-14, 65504, 15},
                                          {DataType::bfloat16(), 0x1p-8, 0x1p-126, 0x1.fep127, 127},
                                          {DataType::float_(32), 0x1p-24, 0x1p-126, 0x1.fffffep127, 127},
                                          {DataType::float_(64), 0x1p-53, 0x1p-1022, 0x1.fffffffffffffp1023, 1023}};

// Draws a number of that dtype, as a double: of a magnitude near 1, anywhere in the range, or past its ends.
inline double drawn_number(kit::Random& random, const FloatRange& range, bool with_specials) {
  static constexpr double kSpecials[] = {0.0, 1.0, NAN, INFINITY};
  double value = 1 + random.uniform();
  const float kind = random.uniform();
  if (kind < 0.15f) {
    value = with_specials ? kSpecials[random.index(std::size(kSpecials))] : 0.0;
  } else if (kind < 0.5f) {
    value = std::ldexp(value, static_cast<int>(random.integer(-4, 4)));
  } else {
    value = std::ldexp(value, static_cast<int>(random.integer(-range.most_exponent - 8, range.most_exponent)));
  }
  const relay::Constant rounded = relay::make_scalar(random.chance(0.5f) ? value : -value, range.dtype);
  return element_as_double(rounded->data.tensor(), 0);
}

inline NDArray drawn_tensor(const Shape& shape, const FloatRange& range, kit::Random& random, bool with_specials) {
  const NDArray data = NDArray::empty(shape, range.dtype);
  for (int64_t i = 0; i < data.num_elements(); ++i)
    set_element(data.tensor(), i, drawn_number(random, range, with_specials));
  return data;
}

// Draws a constant. Most are not far from 1, since most that are would not be folded.
inline NDArray drawn_constant(const Shape& shape, FloatRange range, kit::Random& random) {
  if (random.chance(0.8f)) range.most_exponent = 3;
  return drawn_tensor(shape, range, random, false);
}

// Returns whether two numbers are equal with the sign of a zero; NaN equals NaN.
inline bool are_same_bits(double a, double b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

// Returns the elements of a tensor as doubles.
inline std::vector<double> numbers_in(const NDArray& data) {
  std::vector<double> values;
  for (int64_t i = 0; i < data.num_elements(); ++i) values.push_back(element_as_double(data.tensor(), i));
  return values;
}

// Returns the elements of all results of @main, one result after the other.
inline std::vector<double> numbers_of_results(const IRModule& module, const std::vector<NDArray>& inputs) {
  std::vector<double> values;
  for (const NDArray& result : interp::run_main(module, inputs)) {
    for (const double value : numbers_in(result)) values.push_back(value);
  }
  return values;
}

}  // namespace headrace::passes
