#include "tensor/narrow_float.h"

namespace headrace {

float narrow_to_float(uint8_t code, DataType dtype) {
  const NarrowFloat row = narrow_float(dtype);
  const uint32_t size = code & (row.sign - 1u), sign = (code & row.sign) != 0 ? 0x80000000u : 0;
  const bool is_nan = size > row.last_number() || (row.is_unsigned_zero && code == row.sign);
  uint32_t bits = 0;
  if (is_nan) {
    bits = 0x7fc00000u;
  } else if (row.infinity != 0 && size == row.infinity) {
    bits = 0x7f800000u;
  } else if (size >> row.mantissa_bits == 0) {  // a subnormal number: a multiple of the least one
    bits = std::bit_cast<uint32_t>(static_cast<float>(size) *
                                   std::bit_cast<float>((128u - row.bias - row.mantissa_bits) << 23));
  } else {
    bits = (size << (23 - row.mantissa_bits)) + ((127u - row.bias) << 23);
  }
  return std::bit_cast<float>(bits | sign);
}

uint8_t float_to_narrow(float value, DataType dtype) {
  const NarrowFloat row = narrow_float(dtype);
  const uint32_t bits = std::bit_cast<uint32_t>(value), size = bits & 0x7fffffffu;
  const uint8_t sign = bits != size ? row.sign : 0;
  const uint32_t shift = 23u - row.mantissa_bits;
  if (size > 0x7f800000u) return static_cast<uint8_t>(row.has_nan() ? row.nan | sign : row.nan ^ sign);
  uint32_t code = 0;
  if (size < (128u - row.bias) << 23) {
    // Below the least normal number: adding 2^23 times the least subnormal one rounds to its multiples.
    const uint32_t aligner = (151u - row.bias - row.mantissa_bits) << 23;
    code = std::bit_cast<uint32_t>(std::bit_cast<float>(size) + std::bit_cast<float>(aligner)) - aligner;
  } else {
    code = (size - ((127u - row.bias) << 23) + ((1u << (shift - 1)) - 1) + ((size >> shift) & 1)) >> shift;
  }
  if (code > row.greatest) code = row.greatest;
  return code == 0 && row.is_unsigned_zero ? 0 : static_cast<uint8_t>(code | sign);
}

}  // namespace headrace
