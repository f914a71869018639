#include "ir/text_literal.h"

#include <algorithm>
#include <bit>
#include <charconv>

#include "tensor/convert_number.h"

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
      {"f64", DataType::float_(64)}, {"bf16", DataType::bfloat16()}, {"i", DataType::int_(32)},
      {"i1", DataType::int_(1)},     {"i2", DataType::int_(2)},      {"i4", DataType::int_(4)},
      {"i8", DataType::int_(8)},     {"i16", DataType::int_(16)},    {"i32", DataType::int_(32)},
      {"i64", DataType::int_(64)},   {"u1", DataType::bool_()},      {"u2", DataType::uint(2)},
      {"u4", DataType::uint(4)},     {"u8", DataType::uint(8)},      {"u16", DataType::uint(16)},
      {"u32", DataType::uint(32)},   {"u64", DataType::uint(64)}};
  if (suffix.empty()) return is_real ? DataType::float_(32) : DataType::int_(32);
  for (const Suffix& candidate : kSuffixes) {
    if (candidate.text == suffix && candidate.dtype.is_float() >= is_real) return candidate.dtype;
  }
  return std::nullopt;
}

// Returns whether the number of a literal with digits that are not all 0 is below 1, however long the literal is.
static bool is_below_one(std::string_view text) {
  const size_t mark = std::min(text.find_first_of("eE"), text.size());
  const std::string_view digits = text.substr(0, mark);
  std::string_view exponent_text = text.substr(std::min(mark + 1, text.size()));
  if (exponent_text.starts_with('+')) exponent_text.remove_prefix(1);
  int64_t exponent = 0;
  const auto [stop, error] =
      std::from_chars(exponent_text.data(), exponent_text.data() + exponent_text.size(), exponent);
  if (error == std::errc::result_out_of_range) return exponent_text.starts_with('-');
  const size_t dot = std::min(digits.find('.'), digits.size()), first = digits.find_first_not_of("0.");
  // The power of ten of the first digit that counts.
  const auto place = static_cast<int64_t>(dot) - static_cast<int64_t>(first) - (first < dot ? 1 : 0);
  return place + exponent < 0;
}

template <typename T>
static std::optional<T> read_real(std::string_view text) {
  if (text.ends_with('.')) text.remove_suffix(1);
  T value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (stop != text.data() + text.size()) return std::nullopt;
  // Too small for a subnormal is zero; too large is an error.
  if (error == std::errc::result_out_of_range) return is_below_one(text) ? std::optional<T>(T{0}) : std::nullopt;
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

// Returns the magnitude of the last integer, or of the first one.
static uint64_t integer_limit(bool negative, DataType dtype) {
  if (dtype.is_bool()) return negative ? 0 : 1;
  const int bits = std::clamp(dtype.bits(), 1, 64);
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
                     dtype.is_uint() || dtype.is_bool() ? "" : "-", integer_limit(true, dtype),
                     integer_limit(false, dtype));
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
  if (dtype.bits() == 32) {
    const auto value = read_real<float>(text);
    return value ? std::optional<uint64_t>(std::bit_cast<uint32_t>(*value)) : std::nullopt;
  }
  const auto value = read_real<double>(text);
  if (!value) return std::nullopt;
  bits = dtype.is_bfloat16() ? float_to_bfloat16(narrow_to_odd(*value)) : float_to_half(narrow_to_odd(*value));
  return bits == infinity ? std::nullopt : std::optional(bits);
}

}  // namespace headrace
