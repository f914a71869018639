#include "tensor/data_type.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <iterator>
#include <span>

#include "object/dtype_text.h"
#include "object/string.h"
#include "tensor/convert_number.h"
#include "tensor/narrow_float.h"

namespace headrace {

std::string DataType::to_string() const { return dtype_text(raw_.code, raw_.bits, raw_.lanes); }

namespace {

struct Name {
  std::string_view name;
  DataType dtype;
};
// All there are, but for their lanes.
constexpr Name kNames[] = {{"float32", DataType::float_(32)},
                           {"float64", DataType::float_(64)},
                           {"float16", DataType::float_(16)},
                           {"bfloat16", DataType::bfloat16()},
                           {"float8_e4m3fn", {DataType::kFloat8E4M3Fn, 8}},
                           {"float8_e4m3fnuz", {DataType::kFloat8E4M3Fnuz, 8}},
                           {"float8_e5m2", {DataType::kFloat8E5M2, 8}},
                           {"float8_e5m2fnuz", {DataType::kFloat8E5M2Fnuz, 8}},
                           {"float4_e2m1fn", {DataType::kFloat4E2M1Fn, 4}},
                           {"int64", DataType::int_(64)},
                           {"int32", DataType::int_(32)},
                           {"int16", DataType::int_(16)},
                           {"int8", DataType::int_(8)},
                           {"int4", DataType::int_(4)},
                           {"int2", DataType::int_(2)},
                           {"int1", DataType::int_(1)},
                           {"uint64", DataType::uint(64)},
                           {"uint32", DataType::uint(32)},
                           {"uint16", DataType::uint(16)},
                           {"uint8", DataType::uint(8)},
                           {"uint4", DataType::uint(4)},
                           {"uint2", DataType::uint(2)},
                           {"uint1", DataType::uint(1)},
                           {"bool", DataType::bool_()},
                           {"handle", DataType::handle()},
                           {"void", DataType::void_()}};

// Other names for these, as texts of Relay and users of numpy write them.
constexpr Name kShortNames[] = {
    {"float", DataType::float_(32)}, {"int", DataType::int_(32)}, {"uint", DataType::uint(32)}};

[[noreturn]] void refuse(std::string_view text) {
  std::vector<std::string_view> known;
  for (const Name& name : kNames) known.push_back(name.name);
  throw_user_error("'{}' is not a dtype; dtypes are {}, with an optional lane count such as float32x8", text,
                   fmt::join(known, ", "));
}

}  // namespace

DataType DataType::parse(std::string_view text) {
  std::string_view base = text;
  int lanes = 1;
  if (const size_t x = text.find('x'); x != std::string_view::npos) {
    base = text.substr(0, x);
    const std::string_view digits = text.substr(x + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), lanes);
    if (error != std::errc() || end != digits.data() + digits.size() || lanes < 1 || lanes > 65535) base = {};
  }
  for (const std::span<const Name> names : {std::span<const Name>(kNames), std::span<const Name>(kShortNames)}) {
    for (const Name& name : names) {
      if (name.name == base && (lanes == 1 || !name.dtype.is_void()))
        return lanes == 1 ? name.dtype : name.dtype.with_lanes(lanes);
    }
  }
  refuse(text);
}

Value ValueTraits<DataType>::to(DataType dtype) {
  RawValue raw;
  raw.type_index = type_index::kDataType;
  raw.v.v_int = 0;
  raw.v.v_dtype = {dtype.raw().code, dtype.raw().bits, dtype.raw().lanes};
  return Value::adopt(raw);
}

bool ValueTraits<DataType>::matches(const RawValue& raw) {
  return raw.type_index == type_index::kDataType || is_string(raw);
}

DataType ValueTraits<DataType>::from(const RawValue& raw) {
  if (raw.type_index != type_index::kDataType) return DataType::parse(string_of(raw));
  const DataType dtype(DLDataType{raw.v.v_dtype.code, raw.v.v_dtype.bits, raw.v.v_dtype.lanes});
  // A text cannot say another, and nothing here computes with one.
  const auto is_it = [&](const Name& name) { return name.dtype == dtype.element(); };
  const bool is_known = dtype.lanes() > 0 && std::any_of(std::begin(kNames), std::end(kNames), is_it);
  if (!is_known && !dtype.is_void()) refuse(dtype.to_string());
  return dtype;
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t mantissa = bits & 0x3ffu;
  // As the machine's instruction: a NaN keeps its payload and becomes quiet.
  if (exponent == 0x1f)
    return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13) | (mantissa != 0 ? 0x400000u : 0u));
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(mantissa), -24);
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint16_t sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) {  // infinity, or a quiet NaN
    return static_cast<uint16_t>(sign | (magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x1ffu) : 0x7c00u));
  }
  if (magnitude >= 0x477ff000u) return static_cast<uint16_t>(sign | 0x7c00u);  // 65520 and more round to infinity
  if (magnitude < 0x38800000u) {                                               // below 2^-14: a subnormal
    const float scaled = std::ldexp(std::bit_cast<float>(magnitude), 24);
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::nearbyint(scaled)));
  }
  const uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<uint16_t>(sign | static_cast<uint16_t>((rounded - 0x38000000u) >> 13));
}

float bfloat16_to_float(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

uint16_t float_to_bfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

double round_number(double value, DataType dtype) {
  if (dtype.bits() == 64) return value;
  if (dtype.bits() == 32) return static_cast<double>(static_cast<float>(value));
  const float odd = narrow_to_odd(value);
  if (dtype.is_narrow_float()) return static_cast<double>(narrow_to_float(float_to_narrow(odd, dtype), dtype));
  return static_cast<double>(dtype.is_bfloat16() ? bfloat16_to_float(float_to_bfloat16(odd))
                                                 : half_to_float(float_to_half(odd)));
}

}  // namespace headrace
