// Names and messages as a terminal may show them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace headrace::tools {

enum class Newlines : uint8_t { kEscaped, kKept };

// Escapes what could change a terminal or the layout: control characters, marks that reverse the direction of writing,
// and bytes that are not UTF-8. A byte is shown as `\x1b`, a character of several bytes as `\u202e`. Names from files
// may hold all of them. A message of several lines keeps its newlines.
std::string shown(std::string_view text, Newlines newlines = Newlines::kEscaped);

}  // namespace headrace::tools
