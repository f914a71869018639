#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "base/utf8.h"

namespace headrace {

namespace {

// Escapes whole characters until `least` bytes of `text` are read, and sets `end` to their number.
std::string escape_first(std::string_view text, size_t least, size_t& end) {
  std::string result;
  size_t i = 0;
  for (size_t length = 0; i < least; i += length) {
    const auto byte = static_cast<unsigned char>(text[i]);
    length = utf8_length(text.substr(i));
    if (length == 0 || byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
      length = 1;
    } else {
      result += text.substr(i, length);
    }
  }
  end = i;
  return result;
}

}  // namespace

std::string escaped(std::string_view text) {
  size_t end = 0;
  return escape_first(text, text.size(), end);
}

std::string printable(std::string_view name) {
  constexpr size_t kLongest = 80;
  size_t end = 0;
  const std::string shown = escape_first(name, std::min(name.size(), kLongest), end);
  return fmt::format("'{}{}'", shown, end < name.size() ? "..." : "");
}

}  // namespace headrace
