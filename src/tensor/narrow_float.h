// Floats of 8 and 4 bits, which no op computes with: their numbers as float, and the nearest of them to a float.
//
// A number is a sign, an exponent of `bias` and `mantissa_bits` of mantissa, as in float32, with subnormal numbers.
// Three kinds of formats differ in the codes that are no finite numbers: float8_e5m2 has infinities and NaNs, as IEEE
// 754 has; the others without `uz` have no infinities, and one NaN or none; those with `uz` have no negative zero,
// whose code is their only NaN. Sources: P. Micikevicius et al., "FP8 Formats for Deep Learning" (2022); B. Noune et
// al., "8-bit Numerical Formats for Deep Neural Networks" (2022); OCP Microscaling Formats 1.0.
//
// Code generators repeat the two functions (codegen/llvm/number.cc, codegen/c_helpers.cc) from the same rows.
#pragma once

#include <bit>

#include "tensor/data_type.h"

namespace headrace {

struct NarrowFloat {
  uint8_t mantissa_bits, bias;
  uint8_t sign;      // the bit of the sign
  uint8_t greatest;  // the greatest finite number
  uint8_t infinity;  // 0: none
  uint8_t nan;       // the NaN that others become; in a format without NaN, negative zero
  bool is_unsigned_zero;
  constexpr bool has_nan() const { return nan != sign || is_unsigned_zero; }
  // The last code without sign that is not NaN.
  constexpr uint8_t last_number() const { return infinity != 0 ? infinity : greatest; }
};

// Returns the row of a narrow float.
constexpr NarrowFloat narrow_float(DataType dtype) {
  switch (dtype.code()) {
    case DataType::kFloat8E4M3Fn:
      return {3, 7, 0x80, 0x7e, 0, 0x7f, false};
    case DataType::kFloat8E4M3Fnuz:
      return {3, 8, 0x80, 0x7f, 0, 0x80, true};
    case DataType::kFloat8E5M2:
      return {2, 15, 0x80, 0x7b, 0x7c, 0x7e, false};
    case DataType::kFloat8E5M2Fnuz:
      return {2, 16, 0x80, 0x7f, 0, 0x80, true};
    default:  // float4_e2m1fn
      return {1, 1, 0x8, 0x7, 0, 0x8, false};
  }
}

// Returns the number of a code as a float, which holds it. Bits above those of the dtype do not count.
float narrow_to_float(uint8_t code, DataType dtype);
// Returns the code of the number that is nearest to `value`, ties to even. Saturates: greater ones, also infinite ones,
// become the greatest finite number. A NaN keeps its sign where the format has one for it.
uint8_t float_to_narrow(float value, DataType dtype);

}  // namespace headrace
