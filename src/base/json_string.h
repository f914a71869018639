// Strings in JSON texts that are written by hand.
#pragma once

#include <string>
#include <string_view>

namespace headrace {

// Returns the text as a JSON string, with its quotes. What is no UTF-8 becomes U+FFFD.
std::string json_string(std::string_view text);

}  // namespace headrace
