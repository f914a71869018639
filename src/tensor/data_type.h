// DataType: kind, bits and lanes of an element; as DLDataType, and with its name ("float32", "int4", "bool",
// "float8_e4m3fn", "float32x16"). An unsigned integer of one bit is bool, as in Relay: both names give one dtype, which
// prints as bool. An element below 8 bits takes one byte of memory: an integer is extended to 8 bits, of a float4 the
// low four bits count.
#pragma once

#include <dlpack/dlpack.h>

#include "object/reflect.h"

namespace headrace {

class DataType {
 public:
  enum Code : uint8_t {
    kInt = kDLInt,
    kUInt = kDLUInt,
    kFloat = kDLFloat,
    kHandle = kDLOpaqueHandle,
    kBFloat = kDLBfloat,
    kBool = kDLBool,
    kFloat8E4M3Fn = kDLFloat8_e4m3fn,
    kFloat8E4M3Fnuz = kDLFloat8_e4m3fnuz,
    kFloat8E5M2 = kDLFloat8_e5m2,
    kFloat8E5M2Fnuz = kDLFloat8_e5m2fnuz,
    kFloat4E2M1Fn = kDLFloat4_e2m1fn,
  };
  constexpr DataType() = default;
  constexpr DataType(Code code, int bits, int lanes = 1)
      : DataType(DLDataType{code, static_cast<uint8_t>(bits), static_cast<uint16_t>(lanes)}) {}
  constexpr explicit DataType(DLDataType raw)
      : raw_(raw.code == kDLUInt && raw.bits == 1 ? DLDataType{kDLBool, 8, raw.lanes} : raw) {}

  static constexpr DataType int_(int bits, int lanes = 1) { return {kInt, bits, lanes}; }
  static constexpr DataType uint(int bits, int lanes = 1) { return {kUInt, bits, lanes}; }
  static constexpr DataType float_(int bits, int lanes = 1) { return {kFloat, bits, lanes}; }
  static constexpr DataType bfloat16(int lanes = 1) { return {kBFloat, 16, lanes}; }
  static constexpr DataType bool_(int lanes = 1) { return {kBool, 8, lanes}; }
  static constexpr DataType handle() { return {kHandle, 64}; }
  // Returns the dtype without a value, which a call that is a statement has.
  static constexpr DataType void_() { return {kHandle, 0, 0}; }

  constexpr Code code() const { return static_cast<Code>(raw_.code); }
  constexpr int bits() const { return raw_.bits; }
  constexpr int lanes() const { return raw_.lanes; }
  constexpr bool is_int() const { return code() == kInt; }
  constexpr bool is_uint() const { return code() == kUInt; }
  constexpr bool is_bool() const { return code() == kBool; }
  // float16, float32, float64 or bfloat16.
  constexpr bool is_float() const { return code() == kFloat || code() == kBFloat; }
  constexpr bool is_bfloat16() const { return code() == kBFloat; }
  // A float of 8 or 4 bits (narrow_float.h); is_float() is false for it.
  constexpr bool is_narrow_float() const {
    return (code() >= kFloat8E4M3Fn && code() <= kFloat8E5M2Fnuz) || code() == kFloat4E2M1Fn;
  }
  // An integer of 4 or 2 bits.
  constexpr bool is_narrow_int() const { return (is_int() || is_uint()) && (bits() == 4 || bits() == 2); }
  // A number that is cast, quantized and moved, but that no op computes with.
  constexpr bool is_narrow() const { return is_narrow_float() || is_narrow_int(); }
  constexpr bool is_handle() const { return code() == kHandle && bits() != 0; }
  constexpr bool is_void() const { return code() == kHandle && bits() == 0; }
  constexpr bool is_scalar() const { return lanes() == 1; }
  // Returns the bytes of one element of memory, its lanes together; an element below 8 bits alone counts one.
  constexpr size_t bytes() const { return (static_cast<size_t>(bits()) * static_cast<size_t>(lanes()) + 7) / 8; }
  constexpr DataType with_lanes(int lanes) const { return {code(), bits(), lanes}; }
  constexpr DataType element() const { return with_lanes(1); }
  constexpr DLDataType raw() const { return raw_; }
  constexpr bool operator==(const DataType& other) const {
    return raw_.code == other.raw_.code && raw_.bits == other.raw_.bits && raw_.lanes == other.raw_.lanes;
  }
  std::string to_string() const;
  // Parses a dtype's name. UserError that lists the names when `text` is none of them.
  static DataType parse(std::string_view text);

 private:
  DLDataType raw_{kFloat, 32, 1};
};

template <>
struct ValueTraits<DataType> {
  static Value to(DataType dtype);
  // Also accepts a string, which Python and texts give.
  static bool matches(const RawValue& raw);
  static DataType from(const RawValue& raw);
  static std::string name() { return "dtype"; }
};

// Convert float16 and bfloat16 bits to and from float; round to nearest even.
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);

}  // namespace headrace

template <>
struct fmt::formatter<headrace::DataType> : fmt::formatter<std::string> {
  template <typename Context>
  auto format(const headrace::DataType& dtype, Context& context) const {
    return fmt::formatter<std::string>::format(dtype.to_string(), context);
  }
};
