#include "base/json_string.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace headrace {

std::string json_string(std::string_view text) {
  std::string made = "\"";
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const char c = text[0];
    if (length == 0) {
      made += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      made += '\\';
      made += c;
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      made += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      made += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return made + "\"";
}

}  // namespace headrace
