#include "ir/text_names.h"

#include <fmt/format.h>

namespace headrace {

bool is_identifier(std::string_view text, bool dots) {
  bool at_start = true;
  for (const char c : text) {
    if (dots && c == '.' && !at_start) {
      at_start = true;
      continue;
    }
    if (!is_letter(c) && (at_start || !is_digit(c))) return false;
    at_start = false;
  }
  return !at_start;
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

const std::string& NameTable::name_of(const Object* object, std::string_view hint, std::string_view fallback) {
  if (auto it = names_.find(object); it != names_.end()) return it->second;
  std::string base(hint.empty() ? fallback : hint);
  if (base.starts_with('#')) base = "_" + base;  // to the parsers #0 is %0
  std::string name = base;
  int& next = next_[base];
  while (!used_.insert(name).second) name = fmt::format("{}_{}", base, ++next);
  return names_.emplace(object, name).first->second;
}

}  // namespace headrace
