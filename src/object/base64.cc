#include "object/base64.h"

#include "base/error.h"

namespace headrace {

std::string encode_base64(std::span<const std::byte> bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<uint32_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63u];
  }
  return out;
}

std::vector<std::byte> decode_base64(std::string_view text) {
  const auto digit = [](char c) -> int {
    if (c >= 'A' && c <= 'Z') return c - 'A';
    if (c >= 'a' && c <= 'z') return c - 'a' + 26;
    if (c >= '0' && c <= '9') return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
  };
  if (text.size() % 4 != 0)
    throw_user_error("base64 data has {} characters, which is not a multiple of 4", text.size());
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  std::vector<std::byte> out;
  out.reserve(text.size() / 4 * 3);
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t group = 0;
    const size_t padded = i + 4 == text.size() ? padding : 0;
    for (size_t j = 0; j < 4; ++j) {
      const int d = j >= 4 - padded ? 0 : digit(text[i + j]);
      if (d < 0) throw_user_error("base64 data has a character that is not a digit of it");
      group = group << 6 | static_cast<uint32_t>(d);
    }
    for (size_t j = 0; j < 3 - padded; ++j) out.push_back(static_cast<std::byte>(group >> (16 - 8 * j) & 0xff));
  }
  return out;
}

}  // namespace headrace
