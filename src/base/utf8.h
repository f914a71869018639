// UTF-8 (RFC 3629: shortest form, no surrogates).
#pragma once

#include <cstddef>
#include <string_view>

namespace headrace {

// The bytes of the character that `text` begins with; 0 where it begins with none.
size_t utf8_length(std::string_view text);

bool is_utf8(std::string_view text);

}  // namespace headrace
