#include "base/utf8.h"

#include <cstdint>

namespace headrace {

size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0}; };
  const uint8_t first = byte(0), second = byte(1);
  if (text.empty() || (first >= 0x80 && first < 0xc2) || first > 0xf4) return 0;
  const size_t length = first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const bool is_long_form = (first == 0xe0 && second < 0xa0) || (first == 0xf0 && second < 0x90);
  if (is_long_form || (first == 0xed && second >= 0xa0) || (first == 0xf4 && second >= 0x90)) return 0;
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string as_utf8(std::string_view text) {
  std::string made;
  for (size_t i = 0; i < text.size();) {
    const size_t length = utf8_length(text.substr(i));
    made += length == 0 ? "\xef\xbf\xbd" : text.substr(i, length);
    i += length == 0 ? 1 : length;
  }
  return made;
}

}  // namespace headrace
