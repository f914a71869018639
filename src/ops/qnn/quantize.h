// Between numbers and the small integers that stand for them: a number is scale * (integer - zero point).
#pragma once

#include "ops/register.h"

namespace headrace::ops {

struct QuantizeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.QuantizeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<QuantizeAttrs>& f);
  DataType out_dtype = DataType::int_(8);
  int64_t axis = -1;
};

struct DequantizeAttrs : AttrsNode {
  using Parent = AttrsNode;
  static constexpr std::string_view type_key = "relay.attrs.DequantizeAttrs";
  static constexpr bool is_final = true;
  static void fields(FieldList<DequantizeAttrs>& f);
  DataType out_dtype = DataType::float_(32);
  int64_t axis = -1;
};

// Quotients are cut to [-bound, bound] before they become integers, to which the zero point is added: in 32 bits for
// dtypes of 8 and 16 bits, in 64 bits for int32. No zero point of the dtype brings a quotient that was cut back into
// the dtype's range.
inline DataType quantize_sum_dtype(DataType out) { return DataType::int_(out.bits() <= 16 ? 32 : 64); }
inline double quantize_bound(DataType out) { return out.bits() <= 16 ? 0x1p25 : 0x1p40; }
// The least and the greatest integer of a dtype of at most 32 bits.
inline int64_t least_integer(DataType dtype) { return dtype.is_int() ? -(int64_t{1} << (dtype.bits() - 1)) : 0; }
inline int64_t most_integer(DataType dtype) {
  return (int64_t{1} << (dtype.is_int() ? dtype.bits() - 1 : dtype.bits())) - 1;
}

// Makes a call of qnn.quantize or qnn.dequantize. `axis` is the one that a scale or zero point of one dimension has.
Expr quantize(Expr data, Expr scale, Expr zero_point, DataType out_dtype, int64_t axis, Span span = {});
Expr dequantize(Expr data, Expr scale, Expr zero_point, DataType out_dtype, int64_t axis, Span span = {});

}  // namespace headrace::ops
