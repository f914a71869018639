#include "tools/headrace/shown_text.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace headrace::tools {

namespace {

// The code point of a well-formed character.
uint32_t code_point_of(std::string_view character) {
  const auto first = static_cast<uint8_t>(character[0]);
  if (character.size() == 1) return first;
  uint32_t code = first & (0x7fu >> character.size());
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<uint8_t>(c) & 0x3fu);
  return code;
}

// Unicode 15.1, UAX 9 table 4: the marks that change the direction of the text after them; and the separators of lines.
bool changes_layout(uint32_t code) {
  return code == 0x61c || code == 0x200e || code == 0x200f || (code >= 0x2028 && code <= 0x202e) ||
         (code >= 0x2066 && code <= 0x2069);
}

bool is_control(uint32_t code) { return code < 0x20 || (code >= 0x7f && code < 0xa0); }

}  // namespace

std::string shown(std::string_view text, Newlines newlines) {
  std::string result;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, length == 0 ? 1 : length);
    const uint32_t code = length == 0 ? 0 : code_point_of(character);
    const bool is_kept = code == '\n' && newlines == Newlines::kKept;
    if (length == 0 || (length == 1 && is_control(code) && !is_kept)) {
      result += fmt::format("\\x{:02x}", static_cast<uint8_t>(character[0]));
    } else if (length > 1 && (is_control(code) || changes_layout(code))) {
      result += fmt::format("\\u{:04x}", code);
    } else {
      result += character;
    }
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace headrace::tools
