#include "ir/text_literal.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace headrace {

std::optional<std::string> literal_suffix(DataType dtype) {
  if (dtype.lanes() != 1) return std::nullopt;
  switch (dtype.code()) {
    case DataType::kInt:
      return dtype.bits() == 32 ? "" : fmt::format("i{}", dtype.bits());
    case DataType::kUInt:
      return fmt::format("u{}", dtype.bits());
    case DataType::kFloat:
      return dtype.bits() == 32 ? "f" : fmt::format("f{}", dtype.bits());
    case DataType::kBFloat:
      return "bf16";
    case DataType::kBool:
      return "";
    default:
      return std::nullopt;
  }
}

std::optional<DataType> dtype_of_suffix(std::string_view suffix, bool is_real) {
  struct Suffix {
    std::string_view text;
    DataType dtype;
  };
  static constexpr Suffix kSuffixes[] = {
      {"f", DataType::float_(32)},   {"f16", DataType::float_(16)},  {"f32", DataType::float_(32)},
      {"f64", DataType::float_(64)}, {"bf16", DataType::bfloat16()}, {"i1", DataType::int_(1)},
      {"i4", DataType::int_(4)},     {"i8", DataType::int_(8)},      {"i16", DataType::int_(16)},
      {"i32", DataType::int_(32)},   {"i64", DataType::int_(64)},    {"u1", DataType::uint(1)},
      {"u4", DataType::uint(4)},     {"u8", DataType::uint(8)},      {"u16", DataType::uint(16)},
      {"u32", DataType::uint(32)},   {"u64", DataType::uint(64)}};
  if (suffix.empty()) return is_real ? DataType::float_(32) : DataType::int_(32);
  for (const Suffix& candidate : kSuffixes) {
    if (candidate.text == suffix && candidate.dtype.is_float() >= is_real) return candidate.dtype;
  }
  return std::nullopt;
}

template <typename T>
static std::optional<T> read_real(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  T value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size()) return std::nullopt;
  // Too small for a subnormal is zero; too large is an error.
  if (error == std::errc::result_out_of_range) {
    const bool is_tiny = std::string(text).find("e-") != std::string::npos || text.starts_with("0.");
    return is_tiny ? std::optional<T>(T{0}) : std::nullopt;
  }
  return error == std::errc() ? std::optional<T>(value) : std::nullopt;
}

static uint64_t nan_bits(DataType dtype) {
  if (dtype.is_bfloat16()) return 0x7fc0;
  return dtype.bits() == 64 ? 0x7ff8000000000000u : dtype.bits() == 32 ? 0x7fc00000u : 0x7e00u;
}

static uint64_t infinity_bits(DataType dtype) {
  if (dtype.is_bfloat16()) return 0x7f80;
  return dtype.bits() == 64 ? 0x7ff0000000000000u : dtype.bits() == 32 ? 0x7f800000u : 0x7c00u;
}

// The magnitude of the last integer, or of the first one.
static uint64_t integer_limit(bool negative, DataType dtype) {
  const int bits = std::clamp(dtype.bits(), 8, 64);
  if (dtype.is_uint()) return negative ? 0 : bits == 64 ? UINT64_MAX : (uint64_t{1} << bits) - 1;
  return (uint64_t{1} << (bits - 1)) - (negative ? 0 : 1);
}

std::optional<uint64_t> integer_bits(std::string_view digits, bool negative, DataType dtype) {
  uint64_t magnitude = 0;
  const char* end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, magnitude);
  if (error != std::errc() || stop != end || magnitude > integer_limit(negative, dtype)) return std::nullopt;
  return negative ? ~magnitude + 1 : magnitude;
}

std::string integer_misfit(std::string_view digits, bool negative, DataType dtype) {
  return fmt::format("{}{} does not fit {} ({}{} to {})", negative ? "-" : "", digits, dtype,
                     dtype.is_uint() ? "" : "-", integer_limit(true, dtype), integer_limit(false, dtype));
}

std::optional<uint64_t> real_bits(std::string_view text, DataType dtype) {
  const uint64_t infinity = infinity_bits(dtype);
  if (text == "inf") return infinity;
  if (text == "nan") return nan_bits(dtype);
  uint64_t bits = 0;
  if (text.starts_with("nan(0x")) {
    const std::string_view digits = text.substr(6, text.size() - 7);
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits, 16);
    const bool fits = error == std::errc() && (dtype.bits() == 64 || bits >> dtype.bits() == 0);
    return fits && bits > infinity && bits >> (dtype.bits() - 1) == 0 ? std::optional(bits) : std::nullopt;
  }
  if (dtype.bits() == 64) {
    const auto value = read_real<double>(text);
    return value ? std::optional(std::bit_cast<uint64_t>(*value)) : std::nullopt;
  }
  const auto value = read_real<float>(text);
  if (!value) return std::nullopt;
  bits = dtype.bits() == 32    ? std::bit_cast<uint32_t>(*value)
         : dtype.is_bfloat16() ? float_to_bfloat16(*value)
                               : float_to_half(*value);
  return bits == infinity ? std::nullopt : std::optional(bits);
}

}  // namespace headrace
