// Escapes strings for code that writes JSON without a library.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Returns the text as a JSON string, with its quotes. Escapes quotes, backslashes and control characters, and replaces
// each byte that is not UTF-8 by U+FFFD.
std::string json_string(std::string_view text);

}  // namespace headrace
