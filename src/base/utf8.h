// UTF-8 (RFC 3629: shortest form, no surrogates).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace headrace {

// Returns the number of bytes of the first character of `text`; 0 when `text` does not begin with a valid one.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

// Returns the text with U+FFFD in place of each byte that is not UTF-8.
std::string as_utf8(std::string_view text);

}  // namespace headrace
